"""The colors of reports' pages; webui/generate.py writes their style sheet.

Guarantees: each class of time has 3:1 against the background in both themes (WCAG 1.4.11), each text 4.5:1.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Color:
    """A color by its name, as #rrggbb in both themes."""

    name: str
    light: str
    dark: str


PAGE: Final = (
    Color("background", "#ffffff", "#14171c"),
    Color("surface", "#f6f7f9", "#1b1f26"),
    Color("line", "#d0d6dd", "#3a424d"),
    Color("line-soft", "#e8ebef", "#262c34"),
    Color("text", "#1b1f24", "#e6e9ed"),
    Color("text-quiet", "#57606a", "#9aa3ae"),
    Color("link", "#0b5fc1", "#7db4f5"),
    Color("bad", "#b3190d", "#ff8a5c"),
)
CLASSES: Final = (
    Color("compute", "#2e4694", "#3f7cf9"),
    Color("communication", "#d11f11", "#f25810"),
    Color("memory", "#007c5d", "#9deeda"),
    Color("data-loading", "#470063", "#aea4ff"),
    Color("host", "#ca8700", "#fad152"),
    Color("optimizer", "#71243d", "#d9879f"),
    Color("idle", "#8a9099", "#646b76"),
)
SERIES: Final = (
    Color("series-1", "#b3261e", "#ff8a80"),
    Color("series-2", "#0b5fc1", "#7db4f5"),
    Color("series-3", "#1b7f4b", "#6fd39a"),
    Color("series-4", "#8a5a00", "#f0b84a"),
    Color("series-5", "#7b3fb5", "#c9a2f2"),
    Color("series-6", "#00737d", "#5fd0da"),
    Color("series-7", "#a0326d", "#f08fc0"),
    Color("series-8", "#4f5b66", "#b3bcc6"),
)
"""Lines of ranks and hosts over time: none of them is a class of time."""
PALETTE: Final = (*PAGE, *CLASSES, *SERIES)


def style_pages() -> str:
    """The style sheet of the web UI. Registered as colors, so that a Canvas can read what a theme makes of them."""
    registered = "".join(
        f'@property --{one.name} {{ syntax: "<color>"; inherits: true; initial-value: {one.light}; }}\n'
        for one in PALETTE
    )
    chosen = "".join(f"  --{one.name}: light-dark({one.light}, {one.dark});\n" for one in PALETTE)
    return (
        "/* Made by webui/generate.py from fleetprof_analyzer/views/palette.py; contrasts: docs/webui-frontend.md. */\n"
        f"{registered}\n:root {{\n  color-scheme: light dark;\n{chosen}}}\n"
        ':root[data-theme="light"] { color-scheme: light; }\n:root[data-theme="dark"] { color-scheme: dark; }\n'
        "@media print {\n  :root, :root[data-theme] { color-scheme: light; }\n}\n"
    )
