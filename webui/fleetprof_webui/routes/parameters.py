"""Parameters that several routes take, each within a limit."""

from typing import Annotated, Final

from fastapi import Path, Query

_PART: Final = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"

Namespace = Annotated[str, Path(min_length=1, max_length=128, pattern=_PART)]
Uid = Annotated[str, Path(min_length=1, max_length=128, pattern=_PART)]
Text = Annotated[str, Query(max_length=200, description="a part of a name, upper or lower case")]
After = Annotated[str, Query(max_length=1024, description="`next` of the page before")]
Limit = Annotated[int, Query(ge=1, le=200, description="rows of a page")]
Sort = Annotated[str, Query(max_length=32, pattern=r"^-?[a-z_]+$", description="column; - before it: descending")]
Filter = Annotated[str, Query(max_length=512)]
