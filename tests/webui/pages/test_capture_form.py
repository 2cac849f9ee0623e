"""The form of a capture: where it begins, what it fills in, and the request that it writes."""

import re

import pytest
from playwright.sync_api import Page, expect


def test_the_form_of_a_new_capture_writes_the_request_and_the_command(page: Page) -> None:
    page.goto("/requests")
    page.get_by_role("button", name="New capture").click()
    expect(page).to_have_url(re.compile("capture=new"))
    page.get_by_label("Kind", exact=True).select_option("PyTorchJob")
    page.get_by_label("Name", exact=True).fill("llama")
    page.get_by_label("Ranks", exact=True).select_option("every")
    page.get_by_label("N", exact=True).fill("8")
    page.get_by_label("Python stacks").check()
    page.get_by_label("Namespace", exact=True).fill("team-a")
    yaml = page.get_by_label("The same as YAML")
    expect(yaml).to_have_value(
        re.compile(r"kind: PyTorchJob\n +name: llama\n +ranks:\n +every: 8\n(.*\n)+ +collect: \[Stacks\]")
    )
    expect(page.get_by_text("fleetprof capture -f capture.yaml")).to_be_visible()
    # What a person wrote stands until the form changes.
    yaml.fill("written by hand")
    expect(yaml).to_have_value("written by hand")
    page.get_by_label("Length", exact=True).fill("7")
    expect(yaml).to_have_value(re.compile("iterations: 7"))


def test_a_capture_is_asked_for_again_with_its_own_request(page: Page) -> None:
    page.goto("/requests?capture=new&repeat=team-b/failed")
    expect(page.get_by_label("The same as YAML")).to_have_value(re.compile("app: gpt"))
    expect(page.get_by_label("Kind", exact=True)).to_have_count(0)


def test_a_request_is_checked_before_it_is_asked_for(page: Page) -> None:
    page.goto("/requests?capture=new")
    page.get_by_label("Name", exact=True).fill("llama")
    page.get_by_label("Namespace", exact=True).fill("team-a")
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_text("Checked by: this service.")).to_be_visible()
    page.get_by_label("The same as YAML").fill("kind: ProfileRequest")
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_role("alert")).to_contain_text("spec")


@pytest.mark.parametrize(
    ("start", "filled", "namespace"),
    [
        # A job that runs and was never captured.
        ("/fleet#jobs", "kind: Job\n +name: idle", "team-a"),
        # A workload, a report of it.
        ("/fleet/team-a/Job/llama", "kind: Job\n +name: llama", "team-a"),
        ("/reports/team-b/late", "kind: Job\n +name: bert", "team-b"),
    ],
)
def test_a_capture_starts_where_one_is(page: Page, start: str, filled: str, namespace: str) -> None:
    page.goto(start)
    name = filled.rpartition(" ")[2]
    page.get_by_role("link", name=f"Capture {name}", exact=True).first.click()
    expect(page.get_by_label("The same as YAML")).to_have_value(re.compile(filled))
    expect(page.get_by_label("Namespace", exact=True)).to_have_value(namespace)
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_text("Checked by: this service.")).to_be_visible()


def test_the_fleet_says_which_running_jobs_were_never_captured(page: Page) -> None:
    page.goto("/fleet")
    page.get_by_role("link", name="1 running job never captured").click()
    expect(
        page.get_by_role("region", name="Jobs of the last day").get_by_text("no capture of its name")
    ).to_be_in_viewport()


def test_the_form_picks_from_running_jobs(page: Page) -> None:
    page.goto("/requests?capture=new")
    picker = page.get_by_label("Running job")
    expect(picker.locator("option")).to_have_text(
        ["one that runs …", "idle (team-a), never captured", "llama (team-a)"]
    )
    picker.select_option("team-a/Job/idle")
    expect(page.get_by_label("Name", exact=True)).to_have_value("idle")
    expect(page.get_by_label("Namespace", exact=True)).to_have_value("team-a")
    page.get_by_label("Name", exact=True).fill("another")
    expect(picker).to_have_value("")
