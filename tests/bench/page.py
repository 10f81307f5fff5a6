"""docs/benchmarks.md has a section for each part of the benchmarks; a part writes its own and leaves the others."""
import re
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "benchmarks.md"


def write(part, lines):
    """Puts the lines between the marks of the part, at the end if there are none yet."""
    text = PAGE.read_text() if PAGE.exists() else "# Benchmarks\n"
    block = "\n".join([f"<!-- {part} -->", *lines, f"<!-- end of {part} -->"])
    found = re.search(rf"<!-- {part} -->.*?<!-- end of {part} -->", text, re.S)
    text = text[:found.start()] + block + text[found.end():] if found else text.rstrip("\n") + "\n\n" + block + "\n"
    PAGE.write_text(text)
    print("\n".join(lines))
