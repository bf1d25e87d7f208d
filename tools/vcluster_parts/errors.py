"""The one exception of this program: its text is the whole message that the user sees."""


class VclusterError(Exception):
    """Something that the user can put right; the text says what and, where known, how."""
