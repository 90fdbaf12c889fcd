"""The grammar of Boolean expressions: text to a flat program of bit operations, or an error that points at the place.

Guarantee: exact. Parsing never runs code, uses no recursion, and takes time linear in the text; any text either
parses or raises `ExpressionError`.
"""

import difflib
import re
import unicodedata
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, NoReturn

from genscope.refusal import Refusal

MAX_LENGTH = 100_000  # characters
MAX_DEPTH = 100  # open parentheses; bounds the arrays alive during evaluation
MAX_TABLE = 20  # variables of one table
MAX_DIGITS = 9  # of an index, and of a number that is not written in hexadecimal: what an int32 surely holds

FUNCTIONS = ("maj", "thr", "parity", "and", "or", "table")
BINDING = {"|": 1, "^": 2, "&": 3, "~": 4}
OPERATION: dict[str, "Operation"] = {"|": "or", "^": "xor", "&": "and", "~": "not"}
# What people write in other languages, and how it is written here: in the place of an operator, and of an operand.
OPERATOR_SYNONYMS = {
    "and": "&", "∧": "&", "*": "&", "·": "&", "or": "|", "∨": "|", "xor": "^", "parity": "^", "⊕": "^",
    "+": "|` or `^", "]": ")", "}": ")",
}  # fmt: skip
OPERAND_SYNONYMS = {
    "!": "~", "¬": "~", "-": "~", "−": "~", "not": "~", "[": "(", "{": "(", "true": "1", "false": "0",
    "majority": "maj", "threshold": "thr", "xor": "parity", "all": "and", "any": "or",
}  # fmt: skip

Operation = Literal["variable", "constant", "not", "and", "or", "xor", "counter", "add", "at least", "lookup"]


class Step(NamedTuple):
    """One operation of a stack machine.

    `variable`, `constant` and `counter` push; `not`, `and`, `or` and `xor` replace their operands by the result;
    `add` adds a bit times `value` to the counter below it; `at least` turns a counter into a bit by comparison
    with `value`; `lookup` turns it into bit number *counter* of `value`, the table of 2^`arity` entries.
    """

    operation: Operation
    value: int = 0
    arity: int = 0


class ExpressionError(Refusal):
    """A text that is no expression; `position` and `length` say which characters to underline."""

    def __init__(self, message: str, position: int = 0, length: int = 1):
        super().__init__(message)
        self.position = position
        self.length = length


class _Token(NamedTuple):
    text: str
    position: int


@dataclass
class _Frame:
    """An open parenthesis or function call, or the whole text, with the operators that still wait for an operand."""

    opening: _Token
    function: str = ""
    number: int = 0
    arguments: int = 0
    operators: list[str] = field(default_factory=list)


def compile_text(text: str, context_length: int | None) -> tuple[Step, ...]:
    """The program of an expression: postfix order, every function folded over its arguments."""
    return _Compiler(text, context_length).program()


class _Compiler:
    """Operator-precedence parsing with an explicit stack of frames."""

    def __init__(self, text: str, context_length: int | None):
        self.text = text
        self.context_length = context_length
        if len(text) > MAX_LENGTH:
            self.fail(
                _Token("", MAX_LENGTH),
                f"the text has {len(text):,} characters",
                f"at most {MAX_LENGTH:,} characters",
                "Write a repeated part once, as a function of more arguments, or build the task from a truth table.",
            )
        words = re.finditer(r"[A-Za-z_][A-Za-z0-9_]*|[0-9][A-Za-z0-9_]*|\S", text)
        self.tokens = [_Token(match.group(), match.start()) for match in words]
        self.tokens.append(_Token("", len(text.rstrip())))
        self.next = 0
        self.frames = [_Frame(self.tokens[0])]
        self.steps: list[Step] = []

    def program(self) -> tuple[Step, ...]:
        operand_wanted = True
        while self.frames:
            token = self.take()
            operand_wanted = self.operand(token) if operand_wanted else self.operator(token)
        return tuple(self.steps)

    def take(self) -> _Token:
        self.next += 1
        return self.tokens[self.next - 1]

    def operand(self, token: _Token) -> bool:
        """Read what may begin an operand; true if the operand is still to come."""
        word = token.text
        if word == "~":
            self.frames[-1].operators.append(word)
        elif word == "(":
            self.open(_Frame(token))
        elif word in FUNCTIONS:
            self.call(token)
        elif word in ("0", "1"):
            self.steps.append(Step("constant", int(word)))
            return False
        elif re.fullmatch("x[0-9]+", word):
            self.steps.append(Step("variable", self.index(token)))
            return False
        else:
            self.fail(token, f"found {_name(token)} where an operand is expected", self.operands(), self.advice(token))
        return True

    def operator(self, token: _Token) -> bool:
        """Read what may follow an operand; true if an operand must follow."""
        frame, word = self.frames[-1], token.text
        if word in ("&", "^", "|"):
            self.reduce(frame, BINDING[word])
            frame.operators.append(word)
        elif word == "," and frame.function:
            self.argument(frame)
        elif word == ")" and len(self.frames) > 1:
            self.close(self.frames.pop())
            return False
        elif word == "" and len(self.frames) == 1:
            self.reduce(self.frames.pop())
            return False
        else:
            self.fail_operator(frame, token)
        return True

    def reduce(self, frame: _Frame, binding: int = 0) -> None:
        """Apply the waiting operators that bind at least as tightly; equal ones associate to the left."""
        while frame.operators and BINDING[frame.operators[-1]] >= binding:
            self.steps.append(Step(OPERATION[frame.operators.pop()]))

    def open(self, frame: _Frame) -> None:
        if len(self.frames) > MAX_DEPTH:
            self.fail(
                frame.opening,
                f"more than {MAX_DEPTH} parentheses are open here",
                f"at most {MAX_DEPTH} levels of parentheses",
                "Drop those that only repeat the binding ~ & ^ |, or use and(...), or(...), parity(...).",
            )
        self.frames.append(frame)

    def call(self, token: _Token) -> None:
        name = token.text
        self.expect("(", f"`(` after the function name `{name}`", f"Write {_example(name)}.")
        number = 0
        if name in ("thr", "table"):
            number = self.number(self.take(), name)
            self.expect(";", f"`;` after the number of `{name}`", f"Write {_example(name)}.")
        self.open(_Frame(token, name, number))
        if name in ("maj", "thr", "table"):
            self.steps.append(Step("counter"))

    def argument(self, frame: _Frame) -> None:
        """Fold a finished argument into the function's running value."""
        self.reduce(frame)
        if frame.function in ("maj", "thr"):
            self.steps.append(Step("add", 1))
        elif frame.function == "table":
            if frame.arguments == MAX_TABLE:
                self.fail(
                    frame.opening,
                    f"this table has more than {MAX_TABLE} variables",
                    f"tables of at most {MAX_TABLE} variables",
                    "Write the function with operators.",
                )
            self.steps.append(Step("add", 1 << frame.arguments))
        elif frame.arguments:
            self.steps.append(Step("xor" if frame.function == "parity" else "and" if frame.function == "and" else "or"))
        frame.arguments += 1

    def close(self, frame: _Frame) -> None:
        if not frame.function:
            self.reduce(frame)
            return
        self.argument(frame)
        count = frame.arguments
        if frame.function == "maj":
            self.steps.append(Step("at least", count // 2 + 1))
        elif frame.function == "thr":
            if frame.number > count:
                self.fail(
                    frame.opening,
                    f"thr({frame.number}; ...) has {count} argument{'s' * (count > 1)}",
                    f"thr(k; ...) with k from 0 to the number of arguments, here {count}",
                    f"Lower k to {count} or less, or add arguments.",
                )
            self.steps.append(Step("at least", frame.number))
        elif frame.function == "table":
            if frame.number >> (1 << count):
                entries = 1 << count
                self.fail(
                    frame.opening,
                    f"the number of this table has {frame.number.bit_length()} bits",
                    f"numbers of at most 2^{count} = {entries} bits with {count} variable{'s' * (count > 1)}, one "
                    "bit for each input",
                    "Shorten the number or list more variables.",
                )
            self.steps.append(Step("lookup", frame.number, count))

    def index(self, token: _Token) -> int:
        digits = token.text[1:]
        if digits != "0" and digits.startswith("0"):
            advice = f"Write `x{digits.lstrip('0') or '0'}`."
            self.fail(token, f"the index of {_name(token)} begins with 0", "indices without leading zeros", advice)
        bound = 10**MAX_DIGITS if self.context_length is None else self.context_length
        if len(digits) > MAX_DIGITS or int(digits) >= bound:
            if self.context_length is None:
                allowed, advice = f"indices of at most {MAX_DIGITS} digits", "Use a smaller index."
            else:
                allowed = f"indices go up to x{bound - 1} for {bound} bits"
                advice = "Use a smaller index or more bits."
            self.fail(token, f"variable {_name(token)} is out of range", allowed, advice)
        return int(digits)

    def number(self, token: _Token, function: str) -> int:
        if re.fullmatch("0x[0-9a-fA-F]+", token.text):
            return int(token.text, 16)
        if re.fullmatch("[0-9]+", token.text) and len(token.text) <= MAX_DIGITS:
            return int(token.text)
        return self.fail(
            token,
            f"found {_name(token)} where `{function}` needs a number",
            f"a decimal number of at most {MAX_DIGITS} digits, or a hexadecimal one of any length, such as 0x96",
            f"Write {_example(function)}.",
        )

    def expect(self, symbol: str, allowed: str, advice: str) -> None:
        token = self.take()
        if token.text != symbol:
            self.fail(token, f"found {_name(token)}", allowed, advice)

    def fail_operator(self, frame: _Frame, token: _Token) -> NoReturn:
        """Report a token that cannot follow an operand."""
        allowed = "an operator & ^ |" + (", `,`" if frame.function else "")
        allowed += " or `)`" if len(self.frames) > 1 else " or the end of the text"
        if token.text == "":
            found, advice = f"{_name(frame.opening)} is never closed", "Write `)` where it ends."
            token = frame.opening
        elif token.text == ")":
            found, advice = "`)` closes nothing", "Remove it, or write `(` where the group begins."
        elif token.text == ",":
            found = "found `,` outside of a function call"
            advice = "Commas separate arguments, as in maj(x0, x1, x2)."
        elif token.text == ";":
            found, advice = "found `;`", f"Only thr and table take a number before `;`: {_example('thr')}."
        elif token.text.lower() in OPERATOR_SYNONYMS:
            found = f"found {_name(token)} where an operator is expected"
            advice = f"Did you mean `{OPERATOR_SYNONYMS[token.text.lower()]}`?"
        else:
            found = f"found {_name(token)} right after an operand"
            begins = token.text in "~(" or re.match("[A-Za-z0-9_]", token.text)
            advice = f"Write an operator {'before' if begins else 'instead of'} {_name(token)}, such as `&`."
        self.fail(token, found, allowed, advice)

    def operands(self) -> str:
        last = "..." if self.context_length is None else f"..., x{self.context_length - 1}"
        variables = "x0" if self.context_length == 1 else f"x0, {last}"
        return f"a variable {variables}, a constant 0 or 1, ~, `(`, or a function {', '.join(FUNCTIONS)}"

    def advice(self, token: _Token) -> str:
        """What the writer of an unknown word or symbol most likely meant."""
        word = token.text.lower()
        index = re.fullmatch(r"[a-z]?_?0*([0-9]{1,9})", word)
        close = difflib.get_close_matches(word[:20], FUNCTIONS, n=1, cutoff=0.5)
        before = self.tokens[self.next - 2].text if self.next > 1 else ""
        if word in ("&", "|") and word == before:
            return f"Write a single `{word}`."
        if word in OPERAND_SYNONYMS:
            return f"Did you mean `{OPERAND_SYNONYMS[word]}`?"
        if word in FUNCTIONS:
            return f"Did you mean `{word}`?"
        if index:
            return f"Did you mean `x{index.group(1)}`?"
        if close:
            return f"Did you mean `{close[0]}`?"
        if before in BINDING:
            return f"Write an operand after `{before}`."
        return "Write an operand here, such as `x0`."

    def fail(self, token: _Token, found: str, allowed: str, advice: str) -> NoReturn:
        length = max(1, len(token.text))
        first = max(0, token.position - 50)
        shown = _printable(self.text[first : token.position + 50])
        caret = " " * (token.position - first) + "^" * min(length, 50)
        message = f"Boolean expression, character {token.position + 1}: {found}.\n  {shown}\n  {caret}\n"
        raise ExpressionError(f"{message}Allowed: {allowed}. {advice}", token.position, length)


def _name(token: _Token) -> str:
    text = _printable(token.text)
    return f"`{text if len(text) <= 20 else text[:17] + '...'}`" if text else "the end of the text"


def _example(function: str) -> str:
    numbers = {"thr": "2; ", "table": "0x96; "}
    return f"`{function}({numbers.get(function, '')}x0, x1, x2)`"


def _printable(text: str) -> str:
    """The text with every character that would not take one column replaced, so that the caret stands right."""
    return "".join(
        char if _one_column(char) else " " if char.isspace() else "\N{REPLACEMENT CHARACTER}" for char in text
    )


def _one_column(char: str) -> bool:
    wide = unicodedata.east_asian_width(char) in ("W", "F") or unicodedata.combining(char)
    return char.isprintable() and not wide
