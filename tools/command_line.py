"""What the Python programs of this project share: numbers in options, and how a program ends.

They end as other programs do, with a line for people and the status that a shell expects, and never
with a traceback: after a wrong name, for a file that cannot be written, on Ctrl-C, or when the
reader of the output has gone.
"""

import signal

# Ctrl-C before run() ends the program without the traceback of a half-done import.
_INTERRUPT = signal.getsignal(signal.SIGINT)
if _INTERRUPT == signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

# pylint: disable=wrong-import-position
import argparse  # noqa: E402
import difflib  # noqa: E402
import errno  # noqa: E402
import math  # noqa: E402
import os  # noqa: E402
import re  # noqa: E402
import sys  # noqa: E402
import unicodedata  # noqa: E402


class Terminated(BaseException):
    """A signal asks this program to end; what the program started is ended on the way out."""

    def __init__(self, number):
        super().__init__(number)
        self.number = number


def printable(text):
    """The text with each control character, and each byte that was no UTF-8, written as \\u001b is:
    what a file or a program says cannot command a terminal. The C++ tools do the same."""
    def shown(letter):
        code = ord(letter)
        if letter in "\n\t" or unicodedata.category(letter) not in ("Cc", "Cs"):
            return letter
        return f"\\u{code - 0xdc00 if 0xdc80 <= code <= 0xdcff else code:04x}"

    return "".join(map(shown, text))


def say(name, message):
    """One line on standard error."""
    line = " ".join(printable(str(message)).split("\n"))
    try:
        print(f"{name}: {line.strip()}", file=sys.stderr, flush=True)
    except OSError:
        pass  # Standard error has no reader either.


def did_you_mean(word, names):
    """The end of a message about a word that is none of the names."""
    meant = difflib.get_close_matches(word, names, 1)
    return f"; did you mean {meant[0]}?" if meant else ""


class Parser(argparse.ArgumentParser):
    """A parser that takes options by their whole names only, and for an unknown name says which
    one was perhaps meant."""

    hint = ""  # More text for the message about an unknown name.

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **{"allow_abbrev": False, **options})

    def names(self):
        """The options of this parser and of its subcommands."""
        found = [name for action in self._actions for name in action.option_strings]
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):  # pylint: disable=protected-access
                found += [name for part in action.choices.values() for name in part.names()]
        return found

    def error(self, message):
        """Prints the usage and one line; the status is 2."""
        kind, _, words = message.partition(": ")
        if kind == "unrecognized arguments":
            for word in words.split():
                message += did_you_mean(word.split("=")[0], self.names()) * (word[:2] == "--")
            message += self.hint
        elif choice := re.search(r"invalid choice: '(.*)' \(choose from (.*)\)$", message):
            message += did_you_mean(choice[1], choice[2].replace("'", "").split(", "))
        super().error(printable(message))


def whole(least, most):
    """For argparse: a whole number, written in digits only."""
    def parse(text):
        if not re.fullmatch(r"[0-9]{1,30}", text) or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(
                f"expected a whole number from {least} to {most}, found '{printable(text)}'")
        return int(text)

    return parse


def real(least, most):
    """For argparse: a number, possibly with a fraction, but neither infinite nor NaN."""
    def parse(text):
        value = float(text) if re.fullmatch(r"[0-9]+(\.[0-9]*)?(e-?[0-9]+)?", text) else math.nan
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(
                f"expected a number from {least:g} to {most:g}, found '{printable(text)}'")
        return value

    return parse


def bytes_of(text):
    """"64k" -> 65536; powers of 1024, as the C++ tools read them. None if it is no size."""
    found = re.fullmatch(r"([0-9]{1,18})([kKMGT]?)", text)
    return int(found[1]) << 10 * " kMGT".index(found[2].replace("K", "k") or " ") if found else None


def sizes(least, most):
    """For argparse: a list of sizes, separated by commas, kept as it is written."""
    def parse(text):
        for word in text.split(","):
            if bytes_of(word) is None or not least <= bytes_of(word) <= most:
                raise argparse.ArgumentTypeError(
                    f"expected sizes from {least} to {most}, such as 65536, 64k or 16M, separated "
                    f"by commas; found '{printable(word)}'")
        return text

    return parse


def size(least, most):
    """For argparse: one size."""
    def parse(text):
        if "," in text:
            raise argparse.ArgumentTypeError(f"expected one size, found '{printable(text)}'")
        return sizes(least, most)(text)

    return parse


def names(known):
    """For argparse: a list of names, separated by commas, each once."""
    def parse(text):
        for word in text.split(","):
            if word not in known:
                raise argparse.ArgumentTypeError(
                    f"'{printable(word)}': there are {', '.join(known)}{did_you_mean(word, known)}")
        return list(dict.fromkeys(text.split(",")))

    return parse


def writable(path):
    """For argparse: a file that can be written at the end, as far as can be known before."""
    folder = os.path.dirname(path) or "."
    if os.path.isdir(path) or not os.access(path if os.path.exists(path) else folder, os.W_OK):
        why = "it is a folder" if os.path.isdir(path) else \
            "it is not writable" if os.path.exists(folder) else f"there is no folder {folder}"
        raise argparse.ArgumentTypeError(f"cannot write {printable(path)}: {why}")
    return path


def writable_prefix(prefix):
    """The same for a prefix of file names."""
    writable(prefix + "-")
    return prefix


def _reason(error):
    """The message of an OSError, without its number."""
    names = [str(name) for name in (error.filename, error.filename2) if name is not None]
    return ": ".join([*names, error.strerror or str(error)])


def _raise(number, _frame):
    raise Terminated(number)


def _flushed(body):
    """What `body` returns, or the status that it exits with, once its output has been written."""
    if sys.stdout is None:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF), "standard output")
    try:
        status = body()
    except SystemExit as wanted:  # argparse raises it for --help and for wrong usage.
        sys.stdout.flush()
        return wanted.code
    sys.stdout.flush()
    return status


def run(name, body, wrong, status=2, unwinds=(signal.SIGTERM, signal.SIGHUP)):
    """Runs a program and returns its exit status: that of body(); `status` after an exception of
    the class `wrong`, whose text is the message; 130 after Ctrl-C, 128 and the signal after those
    of `unwinds`, which run the program's clean-up as Ctrl-C does; 141 without a word where the
    reader of its output is gone; 1 where the system refuses something."""
    signal.signal(signal.SIGINT, _INTERRUPT)  # An ignored signal (SIG_IGN) stays ignored.
    for number in unwinds:
        if signal.getsignal(number) == signal.SIG_DFL:  # nohup ignores one of them.
            signal.signal(number, _raise)
    try:
        return _flushed(body)
    except wrong as error:
        say(name, error)
        return status
    except KeyboardInterrupt:
        say(name, "interrupted")
        return 128 + signal.SIGINT
    except Terminated as asked:
        say(name, f"ended by {signal.Signals(asked.number).name}")
        return 128 + asked.number
    except BrokenPipeError:
        # What is still in the buffer cannot be written.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except OSError as error:
        say(name, _reason(error))
        return 1
