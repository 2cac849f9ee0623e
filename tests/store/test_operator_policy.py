"""The operator's policy as docs/rbac-and-s3.md has it, at a real S3 server: enough for the product, and no more."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError
from fleetprof_store.base import UploadPart
from fleetprof_store.s3.store import S3Store

pytestmark = pytest.mark.s3

PAGE = Path(__file__).parents[2] / "docs/rbac-and-s3.md"
DOCUMENTED = "acme-fleetprof"
OTHERS = "payroll/secret"


def read_policy(bucket: str, user: str) -> str:
    """The page's block, for a bucket and a user of the test's."""
    block = re.search(r"This is the operator's policy;.*?\n\n((?:    .*\n)+)", PAGE.read_text())
    assert block is not None
    policy = json.loads(block[1].replace(DOCUMENTED, bucket))
    for statement in policy["Statement"]:
        statement["Principal"] = {"AWS": user}  # a role's policy has none, a bucket's has to
    return json.dumps(policy)


@pytest.fixture(scope="module")
def bucket(s3_server: Any) -> str:
    """With what is another team's in it."""
    name = str(s3_server.make_bucket())
    client = s3_server.session().client("s3", endpoint_url=s3_server.endpoint_url)
    client.put_object(Bucket=name, Key=OTHERS, Body=b"theirs")
    client.put_object(Bucket=name, Key="profiles/v1/team/a/report.json", Body=b"ours")
    return name


@pytest.fixture(scope="module")
def operator(s3_server: Any, bucket: str) -> Any:
    """A session of a user who has this policy alone."""
    user = f"operator-of-{bucket}"  # the server outlives this file's tests, which may come in two parts
    session = s3_server.make_user(user)
    client = s3_server.session().client("s3", endpoint_url=s3_server.endpoint_url)
    client.put_bucket_policy(Bucket=bucket, Policy=read_policy(bucket, user))
    return session


def test_the_documented_policy_is_enough_for_the_store(s3_server: Any, bucket: str, operator: Any) -> None:
    store = S3Store(bucket, "profiles", s3_server.endpoint_url, session=operator, patience_s=2)
    store.put("v1/team/b/ledger.json", b"{}")
    assert store.get("v1/team/b/ledger.json") == b"{}"
    assert [found.key for found in store.list("v1/team/")] == ["v1/team/a/report.json", "v1/team/b/ledger.json"]
    grant = store.grant_upload("v1/team/b/ranks/0/trace.json.gz", [UploadPart(1, b"\0" * 32)], lifetime_s=60)
    store.abort_upload("v1/team/b/ranks/0/trace.json.gz", grant.upload_id)


ATTEMPTS: dict[str, Callable[[Any, str], Any]] = {
    "read another prefix": lambda s3, b: s3.get_object(Bucket=b, Key=OTHERS),
    "copy it into its own": lambda s3, b: s3.copy_object(Bucket=b, Key="profiles/v1/x", CopySource=f"{b}/{OTHERS}"),
    "list another prefix": lambda s3, b: s3.list_objects_v2(Bucket=b, Prefix="payroll/"),
    "list the bucket": lambda s3, b: s3.list_objects_v2(Bucket=b),
    "write another prefix": lambda s3, b: s3.put_object(Bucket=b, Key="payroll/x", Body=b"x"),
    "write beside its own": lambda s3, b: s3.put_object(Bucket=b, Key="profiles/v10/x", Body=b"x"),
    "upload to another prefix": lambda s3, b: s3.create_multipart_upload(Bucket=b, Key="payroll/x"),
    "delete another's": lambda s3, b: s3.delete_object(Bucket=b, Key=OTHERS),
    "delete its own": lambda s3, b: s3.delete_object(Bucket=b, Key="profiles/v1/team/a/report.json"),
    "change the policy": lambda s3, b: s3.put_bucket_policy(Bucket=b, Policy=read_policy(b, "operator")),
    "delete the policy": lambda s3, b: s3.delete_bucket_policy(Bucket=b),
    "delete the bucket": lambda s3, b: s3.delete_bucket(Bucket=b),
}


@pytest.mark.attack
@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_the_operators_credential_reaches_its_prefix_alone(
    s3_server: Any, bucket: str, operator: Any, attempt: str
) -> None:
    with pytest.raises(ClientError) as refused:
        ATTEMPTS[attempt](operator.client("s3", endpoint_url=s3_server.endpoint_url), bucket)
    assert refused.value.response["Error"]["Code"] == "AccessDenied"
