/** Requests of data subjects: what is held of somebody is looked up, given out, erased, or refused; with a certificate. */

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import { call } from "./api";
import { Confirm } from "./confirm";
import { after, focusTitle, Pages } from "./parts";
import { Fault, useRequest } from "./request";
import type { SigningKey } from "./sign";
import { signedCall, signedFailure } from "./signed";
import { Inline } from "./text";
import { day, when } from "./time";
import type { Certificate, Dsar, DsarDetail, Located, Principal } from "./types";

const ACTIONS = {
  register: "Register it only",
  export: "Give a copy",
  purge: "Erase",
  both: "Give a copy, then erase",
  refuse: "Refuse it",
};
const LAWS = {
  gdpr: "GDPR (EU)", uk_gdpr: "UK GDPR", ccpa: "CCPA (California)", us_state: "Another US state", lgpd: "LGPD (Brazil)",
  pipeda: "PIPEDA (Canada)", fadp: "FADP (Switzerland)", popia: "POPIA (South Africa)", pdpa_sg: "PDPA (Singapore)", other: "None of these",
};
const REFUSALS = ["identity_not_proved", "unfounded", "excessive", "withdrawn", "nothing_held"];
const AGAIN_MS = 3_000;

async function requests(cursor: string | null) {
  const found = await call<{ dsars: Dsar[]; next_cursor: string | null }>("GET", `/dsar?limit=20${after(cursor)}`);
  return { rows: found.dsars, next: found.next_cursor };
}

export function DsarCard({ signing, people }: { signing: SigningKey | null; people: Principal[] }) {
  const sent = useSignal(0);
  return (
    <section class="card" aria-labelledby="dsar-title">
      <h2 id="dsar-title">Requests of data subjects</h2>
      <p class="muted">Look first what is found. The deadline counts from the day on which the person asked.</p>
      <Ask signing={signing} people={people} sent={() => (sent.value += 1)} />
      <Pages load={requests} again={sent.value}>
        {(rows, reload) =>
          rows.length === 0 ? (
            <p class="muted">Nobody has asked yet.</p>
          ) : (
            <ul class="rows" aria-label="Requests, newest first">
              {rows.map((row) => <DsarRow key={row.dsar_id} row={row} reload={reload} />)}
            </ul>
          )
        }
      </Pages>
    </section>
  );
}

interface Found {
  located: Located;
  held: string[];
  held_proposals: string[];
}

const NOBODY = { data_subject: "", author: "", owner: "", entities: "" };

function Ask({ signing, people, sent }: { signing: SigningKey | null; people: Principal[]; sent: () => void }) {
  const whom = useSignal(NOBODY);
  const action = useSignal<keyof typeof ACTIONS>("register");
  const law = useSignal<keyof typeof LAWS>("gdpr");
  const received = useSignal("");
  const reference = useSignal("");
  const refusal = useSignal(REFUSALS[0] as string);
  const looked = useSignal<{ of: string; found: Found } | null>(null);
  const { busy, failed, run } = useRequest(signedFailure);
  const { data_subject, author, owner } = whom.value;
  const entities = whom.value.entities.split(/[\s,]+/).filter(Boolean);
  const somebody = [data_subject, author, owner].some((text) => text.trim() !== "") || entities.length > 0;
  const body = (dryRun: boolean) => ({
    action: action.value,
    jurisdiction: law.value,
    dry_run: dryRun,
    ...(data_subject.trim() && { data_subject: data_subject.trim() }),
    ...(author.trim() && { author: author.trim() }),
    ...(owner && { owner }),
    ...(entities.length > 0 && { entities }),
    ...(received.value && { received_at: `${received.value}T00:00:00Z` }),
    ...(reference.value && { case_reference: reference.value }),
    ...(action.value === "refuse" && { reason: refusal.value }),
  });
  const of = JSON.stringify(body(false));
  // What was found is of exactly what is said above it.
  const found = looked.value?.of === of ? looked.value.found : null;
  const look = (event: Event) => {
    event.preventDefault();
    if (signing === null || !somebody) return;
    looked.value = null;
    run(async () => { looked.value = { of, found: await signedCall<Found>(signing, "/dsar", body(true)) }; });
  };
  const send = () => {
    if (signing === null) return;
    looked.value = null;
    run(async () => {
      await signedCall(signing, "/dsar", body(false));
      whom.value = NOBODY;
      reference.value = "";
      focusTitle();
      sent();
    });
  };
  const write = (field: keyof typeof NOBODY) => (event: { currentTarget: { value: string } }) =>
    (whom.value = { ...whom.value, [field]: event.currentTarget.value });
  const erases = action.value === "purge" || action.value === "both";
  return (
    <form class="ask" onSubmit={look}>
      <div class="pair">
        <label>What is done
          <select value={action.value} onChange={(e) => (action.value = e.currentTarget.value as keyof typeof ACTIONS)}>
            {Object.entries(ACTIONS).map(([key, name]) => <option key={key} value={key}>{name}</option>)}
          </select>
        </label>
        <label>Law
          <select value={law.value} onChange={(e) => (law.value = e.currentTarget.value as keyof typeof LAWS)}>
            {Object.entries(LAWS).map(([key, name]) => <option key={key} value={key}>{name}</option>)}
          </select>
        </label>
        <label>Asked on (today if empty) <input type="date" value={received.value} onInput={(e) => (received.value = e.currentTarget.value)} /></label>
        <label>Case number, no name
          <input value={reference.value} pattern="[\x21-\x7e]{1,64}" maxLength={64} autocomplete="off" onInput={(e) => (reference.value = e.currentTarget.value)} />
        </label>
      </div>
      <fieldset>
        <legend>Found by any of these</legend>
        <div class="pair">
          <label>Data subject <input value={data_subject} maxLength={128} dir="auto" autocomplete="off" onInput={write("data_subject")} /></label>
          <label>Author <input value={author} maxLength={200} dir="auto" autocomplete="off" onInput={write("author")} /></label>
          <label>Entity ids <input class="id" value={whom.value.entities} placeholder="ent_…" autocomplete="off" onInput={write("entities")} /></label>
          <label>Principal
            <select value={owner} onChange={write("owner")}>
              <option value="">Nobody</option>
              {people.map((p) => <option key={p.principal_id} value={p.principal_id}>{p.name} ({p.kind})</option>)}
            </select>
          </label>
        </div>
      </fieldset>
      {action.value === "refuse" && (
        <label>Refused because
          <select value={refusal.value} onChange={(e) => (refusal.value = e.currentTarget.value)}>
            {REFUSALS.map((r) => <option key={r} value={r}>{r.replaceAll("_", " ")}</option>)}
          </select>
        </label>
      )}
      <div class="actions"><button type="submit" disabled={signing === null || !somebody || busy}>Look what is found</button></div>
      <Fault why={failed} />
      {found !== null && (
        <div class="banner" role="status">
          <p>Found {counts(found.located)}. {found.held.length + found.held_proposals.length} on legal hold.</p>
        </div>
      )}
      {found !== null && !erases && (
        <div class="actions"><button type="button" class="primary" disabled={busy} onClick={send}>Sign: {ACTIONS[action.value].toLowerCase()}</button></div>
      )}
      {found !== null && erases && <Confirm busy={busy} act={send} />}
    </form>
  );
}

function counts(located: Located): string {
  const parts: [number, string, string][] = [
    [located.memories, "memory", "memories"], [located.proposals, "proposal", "proposals"],
    [located.imports, "import under way", "imports under way"], [located.submissions, "further submission", "further submissions"],
  ];
  const there = parts.filter(([n]) => n > 0).map(([n, one, many]) => `${n} ${n === 1 ? one : many}`);
  return there.join(", ") || "nothing";
}

function DsarRow({ row, reload }: { row: Dsar; reload: () => void }) {
  const opened = useSignal(false);
  const waits = row.status === "working";
  useEffect(() => {
    if (!waits) return;
    const timer = window.setInterval(reload, AGAIN_MS);
    return () => window.clearInterval(timer);
  }, [waits]);
  const done = row.closed_at !== null;
  return (
    <li>
      <p class="chips">
        <span class={`chip ${row.overdue || row.status === "failed" ? "critical" : done ? "clean" : "warn"}`}>{row.overdue ? "overdue" : row.status}</span>
        <span>{ACTIONS[row.action]}{row.case_reference !== null && `, ${row.case_reference}`}</span>
      </p>
      <p class="muted">
        Asked {day(row.received_at)}, {done ? `closed ${day(row.closed_at)}` : `due ${day(row.deadline)}`} ({row.law}).
        {" "}Found {counts(row.located)}.{row.reason !== null && ` ${row.reason.replaceAll("_", " ")}.`}
      </p>
      {!waits && row.certificate && (
        <div><button type="button" class="small" aria-expanded={opened.value} onClick={() => (opened.value = !opened.value)}>
          {opened.value ? "Close" : "Bundle and certificate"}
        </button></div>
      )}
      {opened.value && <Answer row={row} />}
    </li>
  );
}

/** The bundle's link and the certificate, checked anew. */
function Answer({ row }: { row: Dsar }) {
  const detail = useSignal<DsarDetail | null>(null);
  const certificate = useSignal<Certificate | null>(null);
  const { failed, run } = useRequest();
  useEffect(() => run(async () => {
    certificate.value = await call<Certificate>("GET", `/dsar/${row.dsar_id}/certificate`);
    detail.value = await call<DsarDetail>("GET", `/dsar/${row.dsar_id}`);
  }), []);
  const proof = certificate.value;
  const found = detail.value;
  return (
    <div class="read">
      <Fault why={failed} />
      {proof === null && failed === null && <p class="muted" aria-busy="true">Loading…</p>}
      {proof !== null && (
        <>
          <p class={`banner ${proof.valid ? "good" : "bad"}`} role="status">
            {proof.valid
              ? "The certificate agrees with the audit chain and the tombstones."
              : `The certificate does not agree with: ${Object.entries(proof.checks).filter(([, ok]) => !ok).map(([name]) => name.replaceAll("_", " ")).join(", ")}. Tell the operator now.`}
          </p>
          <dl class="facts">
            <dt>Completed</dt><dd>{when(proof.certificate.completed_at)}{!proof.certificate.in_time && ", too late"}</dd>
            {proof.certificate.erased !== null && <><dt>Erased</dt><dd>{counts({ imports: 0, submissions: 0, ...proof.certificate.erased })}; {proof.certificate.tombstones.count} {proof.certificate.tombstones.count === 1 ? "tombstone" : "tombstones"}</dd></>}
            {(proof.certificate.held?.total ?? 0) > 0 && <><dt>Kept</dt><dd>{proof.certificate.held?.total} on legal hold</dd></>}
            {proof.certificate.remains.length > 0 && <><dt>Remains</dt><dd><ul class="plain">{proof.certificate.remains.map((what) => <li key={what}><Inline text={what} /></li>)}</ul></dd></>}
            <dt>Digest</dt><dd class="id">{proof.digest}</dd>
          </dl>
          <div class="actions">
            <button type="button" onClick={() => save(row.dsar_id, proof.certificate)}>Save the certificate</button>
            {found?.link != null && <a href={found.link} rel="noreferrer" download>The bundle</a>}
            {found?.link != null && <span class="muted">The link works for five minutes, and only you can ask for it.</span>}
          </div>
        </>
      )}
    </div>
  );
}

function save(name: string, value: unknown): void {
  const url = URL.createObjectURL(new Blob([JSON.stringify(value, null, 2)], { type: "application/json" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = `${name}.json`;
  link.click();
  URL.revokeObjectURL(url);
}
