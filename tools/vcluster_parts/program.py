"""The name by which this program was called, for what it says of itself: vcluster in the source
tree, ucg_vcluster once it is installed."""

import os
import re
import sys

_CALLED = os.path.basename(sys.argv[0])
# Parts of it are used by other programs, too.
NAME = _CALLED if re.fullmatch(r"(\w+_)?vcluster", _CALLED) else "vcluster"


def named(text):
    """The text with that name for "vcluster", but not in names of files and variables."""
    return re.sub(r"(?<![\w$/])vcluster(?!\w)", NAME, text)
