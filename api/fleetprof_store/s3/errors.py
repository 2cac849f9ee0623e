"""Turns the errors of S3 and boto3 into a StoreError that says what to do.

Guarantees: no error of botocore leaves this package; what may help when it is tried again is `retryable`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import botocore.exceptions

from fleetprof_store.base import NotFound, StoreError

_CREDENTIALS: Final = frozenset(
    {
        "AccessDenied",
        "InvalidAccessKeyId",
        "SignatureDoesNotMatch",
        "ExpiredToken",
        "InvalidToken",
        "AuthFailure",
        "403",
    }
)
TRANSIENT: Final = frozenset(
    {
        "InternalError",
        "ServiceUnavailable",
        "SlowDown",
        "Throttling",
        "ThrottlingException",
        "RequestTimeout",
        "OperationAborted",
    }
)
ABSENT: Final = frozenset({"NoSuchKey", "NotFound", "404"})


class S3Errors:
    """The errors of one bucket; `where` names it in sentences."""

    def __init__(self, where: str) -> None:
        self._where = where

    @contextmanager
    def explained(self, key: str = "") -> Iterator[None]:
        """Turns what is raised within into a StoreError, NotFound for this key."""
        try:
            yield
        except botocore.exceptions.ClientError as error:
            raise self._explain(error, key) from None
        except (botocore.exceptions.NoCredentialsError, botocore.exceptions.PartialCredentialsError) as error:
            raise StoreError(
                f"{self._where}: no credentials ({error}); set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
                "or run where a role is attached",
                retryable=False,
            ) from None
        except (botocore.exceptions.HTTPClientError, botocore.exceptions.ConnectionError, OSError) as error:
            raise StoreError(
                f"{self._where} cannot be reached: {error}; check the address and that the store runs", retryable=True
            ) from None
        except (botocore.exceptions.BotoCoreError, ValueError) as error:
            raise StoreError(f"{self._where}: {error}; check the store's settings", retryable=False) from None

    def _explain(self, error: botocore.exceptions.ClientError, key: str) -> StoreError:
        code = code_of(error)
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        if code == "NoSuchBucket":
            return StoreError(f"{self._where} does not exist; create it or correct its name", retryable=False)
        if code in ABSENT:
            return NotFound(key)
        if code == "RequestTimeTooSkewed":
            return StoreError(f"{self._where}: this machine's clock is wrong; set it", retryable=False)
        if code in _CREDENTIALS or status in (401, 403):
            return StoreError(
                f"{self._where} refuses these credentials ({code}); check the access key, its secret and its "
                "permissions on the bucket (get, put, list, delete objects)",
                retryable=False,
            )
        return StoreError(
            f"{self._where}: {error.operation_name} failed with {code} ({status})",
            retryable=code in TRANSIENT or status >= 500,
        )


def code_of(error: botocore.exceptions.ClientError) -> str:
    """The code that the server gave, empty without one."""
    return str(error.response.get("Error", {}).get("Code", ""))
