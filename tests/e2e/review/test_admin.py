"""What admins do: erase, hold, answer data subjects, and sign it all with a key that cannot leave the browser."""

from __future__ import annotations

import json
import re
import uuid
import zipfile

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from playwright.sync_api import Locator, expect

from tests.e2e.review.desk import DESKTOP, PHONE, Desk
from tests.e2e.review.live import Live
from tests.integration.probe import public_pem

pytestmark = pytest.mark.slow


def part(desk: Desk, name: str, region: str) -> Locator:
    """That part of the tab, opened."""
    desk.page.get_by_role("navigation", name="Administration").get_by_role("link", name=name).click()
    return desk.page.get_by_role("region", name=region)


def with_a_key(desk: Desk, live: Live) -> str:
    """Ada Admin before her tab, her browser's key registered; the public half."""
    desk.sign_in("Ada Admin", "#/admin/keys")
    desk.button("Make a key").click()
    public = desk.page.get_by_label("Public key, for an admin to register")
    expect(public).to_have_value(re.compile("BEGIN PUBLIC KEY"))
    made = public.input_value()
    desk.page.get_by_label("Key id that the registration gave").fill(live.register_key("Ada Admin", made))
    desk.button("Use it").click()
    expect(desk.page.get_by_text("Signs as")).to_be_visible()
    return made


def test_an_admin_erases_with_a_key_made_in_the_browser(desk: Desk, live: Live) -> None:
    memory = live.remember("Ada's first goldfish was called Babbage.")
    public = with_a_key(desk, live)
    assert desk.page.evaluate(_EXPORT) == "refused"
    desk.button("Copy").click()
    assert desk.page.evaluate("navigator.clipboard.readText()") == public

    erase = part(desk, "Erase", "Erase memories")
    erase.get_by_role("textbox", name="Memory ids").fill(memory)
    desk.button("Dry run").click()
    expect(desk.page.get_by_text("Would erase 1 memory")).to_be_visible()
    live.call("demo-agent", "GET", f"/memories/{memory}")
    expect(desk.button("Erase for good")).to_be_disabled()
    desk.page.get_by_label("to confirm").fill("erase")
    desk.look("admin-dry-run")
    desk.button("Erase for good").click()
    expect(desk.page.get_by_text("Erased 1 memory")).to_be_visible()
    assert live.sql("select count(*) as n from memory where memory_id = %s", _uuid(memory)) == [{"n": 0}]
    desk.look("admin-erased")

    # A key signs for another, which waits a day; a key is one person's.
    registered = part(desk, "Signing keys", "Register an admin's key")
    desk.page.get_by_role("combobox", name="Admin").select_option("Ada Admin")
    desk.allow("status of 422")
    desk.page.get_by_role("textbox", name="Public key", exact=True).fill(public)
    desk.button("Sign and register").click()
    expect(registered.get_by_role("alert")).to_contain_text("is or was a key of somebody")
    other = public_pem(ec.generate_private_key(ec.SECP256R1()))
    desk.page.get_by_role("textbox", name="Public key", exact=True).fill(other)
    desk.button("Sign and register").click()
    expect(desk.page.get_by_text(re.compile("Registered as key_.*usable from"))).to_be_visible()
    # A reload finds the key again.
    desk.page.reload()
    expect(desk.page.get_by_text("Signs as")).to_be_visible()
    # A key that is not registered signs nothing.
    desk.page.get_by_label("Another key id").fill("key_" + "0" * 32)
    desk.button("Use it").click()
    part(desk, "Erase", "Erase memories")
    erase.get_by_role("textbox", name="Memory ids").fill(memory)
    desk.allow("status of 401")
    desk.button("Dry run").click()
    expect(erase.get_by_role("alert")).to_contain_text("No usable key")


def test_a_large_erasure_is_followed_to_its_end(desk: Desk, live: Live) -> None:
    live.multiply(live.propose("Ada kept a herd of goldfish.", data_subjects=["herd"]), 1_200)
    live.store_is_there()
    with_a_key(desk, live)
    erase = part(desk, "Erase", "Erase memories")
    erase.get_by_role("combobox", name="What").select_option("A data subject")
    erase.get_by_role("textbox", name="Data subject").fill("herd")
    desk.button("Dry run").click()
    desk.page.get_by_label("to confirm").fill("erase")
    desk.button("Erase for good").click()
    status = erase.get_by_role("status")
    expect(status).to_contain_text("0 memories and 1201 proposals are being erased")
    desk.look("admin-erasing", (DESKTOP, PHONE))
    expect(status).to_contain_text(
        "0 memories and 1201 proposals are erased, 0 on legal hold.", timeout=60_000
    )
    assert live.sql("select count(*) as n from proposal") == [{"n": 0}]


def test_without_a_key_nothing_is_signed(desk: Desk, live: Live) -> None:
    desk.sign_in("Ada Admin")
    erase = part(desk, "Erase", "Erase memories")
    erase.get_by_role("textbox", name="Memory ids").fill("mem_" + "0" * 32)
    expect(desk.button("Dry run")).to_be_disabled()
    desk.look("admin-without-key", (DESKTOP, PHONE))
    desk.page.get_by_role("link", name="Make a key and have it registered").click()
    expect(desk.button("Make a key")).to_be_visible()
    expect(desk.button("Sign and register")).to_be_disabled()
    desk.look("admin-keys")


def test_what_is_named_after_a_dry_run_needs_another(desk: Desk, live: Live) -> None:
    memory = live.remember("Ada's second goldfish was called Lovelace.", data_subjects=["ada"])
    with_a_key(desk, live)
    erase = part(desk, "Erase", "Erase memories")
    erase.get_by_role("combobox", name="What").select_option("A data subject")
    erase.get_by_role("textbox", name="Data subject").fill("ada")
    desk.button("Dry run").click()
    expect(erase).to_contain_text("Would erase 1 memory")
    expect(erase.get_by_label("to confirm")).to_be_visible()
    erase.get_by_role("textbox", name="Data subject").fill("ad")
    expect(erase.get_by_label("to confirm")).to_have_count(0)
    desk.button("Dry run").click()
    expect(erase).to_contain_text("Would erase 0 memories")
    expect(erase.get_by_label("to confirm")).to_have_count(0)
    live.call("demo-agent", "GET", f"/memories/{memory}")


def test_a_legal_hold_is_placed_stops_erasure_and_is_released_by_a_signature(desk: Desk, live: Live) -> None:
    memory = live.remember("Ada's third goldfish was called Byron.")
    with_a_key(desk, live)
    holds = part(desk, "Legal holds", "Legal holds")
    holds.get_by_role("textbox", name="Memory ids").fill(f"{memory} mem_{'0' * 32}")
    expect(desk.button("Place the hold")).to_be_enabled()
    holds.get_by_label("Case number").fill("CASE-7")
    desk.button("Place the hold").click()
    expect(desk.notice).to_contain_text("Held. 1 not found.")
    row = holds.get_by_role("listitem").filter(has_text="CASE-7")
    expect(row).to_contain_text("standing")
    expect(row).to_contain_text("by Ada Admin")
    row.get_by_text("Memories", exact=True).click()
    expect(row).to_contain_text(memory)
    desk.look("admin-held", (DESKTOP, PHONE))

    erase = part(desk, "Erase", "Erase memories")
    erase.get_by_role("textbox", name="Memory ids").fill(memory)
    desk.button("Dry run").click()
    expect(erase).to_contain_text("Would erase 0 memories; 1 on legal hold")

    part(desk, "Legal holds", "Legal holds")
    row.get_by_role("combobox", name="Released because").select_option("placed in error")
    row.get_by_role("button", name="Sign and release").click()
    expect(row).to_contain_text("released")
    expect(row).to_contain_text("placed in error")
    expect(row.get_by_role("button")).to_have_count(0)
    [order] = live.sql("select release_reason from legal_order where case_reference = 'CASE-7'")
    assert order["release_reason"] == "placed_in_error"


def test_a_hold_on_a_data_subject_and_a_case_number_that_is_none(desk: Desk, live: Live) -> None:
    desk.sign_in("Ada Admin")
    holds = part(desk, "Legal holds", "Legal holds")
    holds.get_by_role("combobox", name="What").select_option("A data subject")
    holds.get_by_role("textbox", name="Data subject").fill("hedy")
    holds.get_by_label("Case number").fill("of Hedy Lamarr")
    desk.button("Place the hold").click()
    assert holds.get_by_label("Case number").evaluate("e => e.validity.patternMismatch")
    holds.get_by_label("Case number").fill("CASE-8")
    desk.button("Place the hold").click()
    row = holds.get_by_role("listitem").filter(has_text="CASE-8")
    expect(row).to_contain_text("all of a data subject")
    # Without a key it stands.
    expect(row.get_by_role("button", name="Sign and release")).to_be_disabled()


_EXPORT = """
async () => {
  const database = await new Promise((done) => {
    const request = indexedDB.open("remembrancer");
    request.onsuccess = () => done(request.result);
  });
  const [key] = await new Promise((done) => {
    const request = database.transaction("keys").objectStore("keys").getAll();
    request.onsuccess = () => done(request.result);
  });
  return crypto.subtle.exportKey("pkcs8", key.pair.privateKey).then(() => "exported", () => "refused");
}
"""


def test_a_data_subject_gets_a_copy_and_is_erased_with_a_certificate(desk: Desk, live: Live) -> None:
    memory = live.remember("Grace keeps a moth in her logbook.", data_subjects=["grace"])
    live.store_is_there()
    with_a_key(desk, live)
    card = part(desk, "Data subjects", "Requests of data subjects")
    expect(desk.button("Look what is found")).to_be_disabled()
    card.get_by_role("combobox", name="What is done").select_option("Give a copy, then erase")
    card.get_by_role("combobox", name="Law").select_option("CCPA (California)")
    card.get_by_role("textbox", name="Data subject").fill("grace")
    card.get_by_role("textbox", name="Case number").fill("DSR-1")
    desk.button("Look what is found").click()
    expect(card.get_by_role("status")).to_contain_text("Found 1 memory")
    expect(card.get_by_role("button", name="Erase for good")).to_be_disabled()
    desk.look("admin-subject-found", (DESKTOP, PHONE))
    # What was found is of another request.
    card.get_by_role("textbox", name="Data subject").fill("grac")
    expect(card.get_by_label("to confirm")).to_have_count(0)
    card.get_by_role("textbox", name="Data subject").fill("grace")
    desk.button("Look what is found").click()
    card.get_by_label("to confirm").fill("erase")
    card.get_by_role("button", name="Erase for good").click()
    row = card.get_by_role("listitem").filter(has_text="DSR-1")
    expect(row).to_contain_text("California Civil Code")
    expect(row.get_by_role("button", name="Bundle and certificate")).to_be_visible(timeout=60_000)
    row.get_by_role("button", name="Bundle and certificate").click()
    expect(row.get_by_role("status")).to_contain_text("agrees with the audit chain")
    expect(row).to_contain_text(re.compile("1 memory.*2 tombstones"))
    desk.look("admin-subject-answered", (DESKTOP, PHONE))
    with desk.page.expect_download() as saved:
        row.get_by_role("button", name="Save the certificate").click()
    assert json.loads(saved.value.path().read_text())["case_reference"] == "DSR-1"
    # The object store hands it out, not the API.
    desk.allow("third party: .*/bundles/.*[.]zip")
    with desk.page.expect_download() as bundle:
        row.get_by_role("link", name="The bundle").click()
    assert zipfile.is_zipfile(bundle.value.path())
    assert live.sql("select count(*) as n from memory where memory_id = %s", _uuid(memory)) == [{"n": 0}]


def test_a_request_is_registered_with_its_deadline_and_refused_with_a_reason(desk: Desk, live: Live) -> None:
    with_a_key(desk, live)
    card = part(desk, "Data subjects", "Requests of data subjects")
    card.get_by_role("textbox", name="Author").fill("Nobody Known")
    card.get_by_label("Asked on").fill("2026-01-15")
    card.get_by_role("textbox", name="Case number").fill("DSR-2")
    desk.button("Look what is found").click()
    expect(card.get_by_role("status")).to_contain_text("Found nothing")
    desk.button("Sign: register it only").click()
    row = card.get_by_role("listitem").filter(has_text="DSR-2")
    expect(row).to_contain_text("overdue")
    expect(row).to_contain_text("due 15 Feb 2026")
    card.get_by_role("combobox", name="What is done").select_option("Refuse it")
    card.get_by_role("combobox", name="Refused because").select_option("nothing held")
    card.get_by_role("textbox", name="Author").fill("Nobody Known")
    card.get_by_role("textbox", name="Case number").fill("DSR-3")
    desk.button("Look what is found").click()
    desk.button("Sign: refuse it").click()
    refused = card.get_by_role("listitem").filter(has_text="DSR-3")
    expect(refused).to_contain_text("refused")
    expect(refused).to_contain_text("nothing held")
    # The refusal answers the registered one as well.
    expect(row).not_to_contain_text("overdue")


def _uuid(public: str) -> uuid.UUID:
    return uuid.UUID(public.split("_")[1])
