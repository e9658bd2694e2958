/** The other tabs: quarantine, decided, conflicts, audit, administration. */

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import { apiBase } from "./auth";
import { call, inWords } from "./api";
import { Empty, Loaded, ScreenWords, VerdictChip } from "./parts";
import { makeKey, nameKey, publicPem, signedHeaders, signingKey, type SigningKey } from "./sign";
import { Difference, Marked } from "./text";
import { day, when } from "./time";
import type { AuditEvent, Chain, ConflictRow, Held, Me, Proposal, Purge } from "./types";

function key(): Record<string, string> {
  return { "Idempotency-Key": crypto.randomUUID() };
}

export function QuarantineTab() {
  return (
    <Loaded load={() => call<{ memories: Held[] }>("GET", "/quarantine?limit=200")}>
      {({ memories }, reload) =>
        memories.length === 0 ? (
          <Empty title="Nothing is held">Direct writes that the screen doubts appear here.</Empty>
        ) : (
          <ul class="cards">{memories.map((m) => <HeldCard key={m.memory_id} held={m} reload={reload} />)}</ul>
        )
      }
    </Loaded>
  );
}

function HeldCard({ held, reload }: { held: Held; reload: () => void }) {
  const reason = useSignal("");
  const failed = useSignal<string | null>(null);
  const decidable = held.content !== undefined && !held.masked && held.held_for.includes("screen");
  const act = (what: "release" | "reject") => {
    call("POST", `/quarantine/${held.memory_id}/${what}`, {
      body: { content_digest: held.content_digest, ...(reason.value.trim() ? { reason: reason.value.trim() } : {}) },
      headers: key(),
    }).then(reload, (error: unknown) => (failed.value = inWords(error)));
  };
  return (
    <li class="card">
      <div class="chips">
        {held.screen !== undefined && <VerdictChip screen={held.screen} />}
        {held.held_for.map((why) => <span key={why} class="chip">{why}</span>)}
        <span class="muted">{when(held.created_at)}, from {held.source}</span>
      </div>
      {held.content === undefined ? (
        <p class="muted">A private memory: its text is its owner's alone.</p>
      ) : (
        <Marked text={held.content} signals={(held.screen?.signals ?? []).filter((s) => s.field === "/content")} />
      )}
      {held.screen !== undefined && <ScreenWords screen={held.screen} />}
      {failed.value !== null && <p class="banner bad" role="alert">{failed.value}</p>}
      {decidable && (
        <div class="actions">
          <label class="grow">Reason <input value={reason.value} maxLength={500} onInput={(e) => (reason.value = e.currentTarget.value)} /></label>
          <button type="button" class="primary" disabled={!reason.value.trim()} onClick={() => act("release")}>Release</button>
          <button type="button" class="danger" onClick={() => act("reject")}>Keep out</button>
        </div>
      )}
    </li>
  );
}

export function DecidedTab() {
  const status = useSignal<"approved" | "rejected" | "expired">("approved");
  return (
    <>
      <div class="segments" role="group" aria-label="Which decisions">
        {(["approved", "rejected", "expired"] as const).map((s) => (
          <button key={s} type="button" aria-pressed={status.value === s} onClick={() => (status.value = s)}>{s}</button>
        ))}
      </div>
      <Loaded load={() => call<{ proposals: Proposal[] }>("GET", `/proposals?status=${status.value}&limit=100`)} again={status.value}>
        {({ proposals }) =>
          proposals.length === 0 ? (
            <Empty title={`Nothing was ${status.value}`} />
          ) : (
            <ul class="cards">
              {[...proposals].sort((a, b) => (b.decided_at ?? "").localeCompare(a.decided_at ?? "")).map((p) => (
                <li key={p.proposal_id} class="card">
                  <p class="stored" dir="auto">{p.content}</p>
                  <p class="muted">
                    {p.status} {p.decided_by === null ? "by time" : `by ${p.decided_by}`}, {when(p.decided_at)}
                    {p.decision?.reason ? ` · “${p.decision.reason}”` : ""}
                    {p.decision?.override_reason ? ` · override: “${p.decision.override_reason}”` : ""}
                    {p.decision?.supersedes ? ` · supersedes ${p.decision.supersedes}` : ""}
                  </p>
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
    </>
  );
}

export function ConflictsTab() {
  return (
    <Loaded load={() => call<{ conflicts: ConflictRow[] }>("GET", "/conflicts?limit=200")}>
      {({ conflicts }, reload) =>
        conflicts.length === 0 ? (
          <Empty title="No open conflicts">Contradictions between memories appear here; nothing overwrites by itself.</Empty>
        ) : (
          <ul class="cards">{conflicts.map((c) => <ConflictCard key={c.conflict_id} conflict={c} reload={reload} />)}</ul>
        )
      }
    </Loaded>
  );
}

function ConflictCard({ conflict, reload }: { conflict: ConflictRow; reload: () => void }) {
  const failed = useSignal<string | null>(null);
  const [newer, older] = conflict.sides;
  const close = (resolution: string) => {
    call("POST", `/conflicts/${conflict.conflict_id}/resolve`, { body: { resolution }, headers: key() }).then(
      reload, (error: unknown) => (failed.value = inWords(error)),
    );
  };
  return (
    <li class="card">
      <p class="muted">{conflict.explanation} Open since {when(conflict.opened_at)}.</p>
      <div class="texts two">
        {older !== undefined && <section><h3>Earlier, {day(older.observed_at ?? older.created_at)}</h3><p class="stored" dir="auto">{older.text}</p></section>}
        {newer !== undefined && (
          <section>
            <h3>Later, {day(newer.observed_at ?? newer.created_at)}</h3>
            {older === undefined ? <p class="stored" dir="auto">{newer.text}</p> : <Difference before={older.text} after={newer.text} />}
          </section>
        )}
      </div>
      {failed.value !== null && <p class="banner bad" role="alert">{failed.value}</p>}
      <div class="actions">
        <button type="button" onClick={() => close("resolved")}>Resolved</button>
        <button type="button" onClick={() => close("dismissed")}>No contradiction</button>
      </div>
    </li>
  );
}

export function AuditTab() {
  const chain = useSignal<Chain | null>(null);
  const failed = useSignal<string | null>(null);
  const verify = () => {
    call<Chain>("GET", "/audit/verify").then(
      (found) => { chain.value = found; failed.value = null; },
      (error: unknown) => (failed.value = inWords(error)),
    );
  };
  const found = chain.value;
  return (
    <>
      <div class="actions">
        <button type="button" class="primary" onClick={verify}>Verify the chain</button>
        <div role="status">
          {found?.ok === true && <span class="banner good">Whole: {found.events} events, head {found.head.slice(0, 16)}…</span>}
          {found?.ok === false && (
            <span class="banner bad">Broken: {found.faults.map((f) => `${f.kind.replaceAll("_", " ")} at ${f.seq}`).join(", ")}</span>
          )}
          {failed.value !== null && <span class="banner bad">{failed.value}</span>}
        </div>
      </div>
      <Loaded load={() => call<{ events: AuditEvent[] }>("GET", "/audit?limit=200")}>
        {({ events }) => (
          <div class="scroll" tabIndex={0} role="region" aria-label="Audit events">
            <table>
              <thead><tr><th>#</th><th>When</th><th>Who</th><th>What</th><th>On</th></tr></thead>
              <tbody>
                {events.map((e) => (
                  <tr key={e.seq}>
                    <td>{e.seq}</td><td>{when(e.at)}</td><td>{e.actor_name ?? e.actor_kind}</td>
                    <td>{e.action.replaceAll("_", " ")}</td><td class="id">{e.target ?? ""}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
      </Loaded>
    </>
  );
}

const REASONS = ["data_subject_request", "poisoned", "secret", "unlawful", "retention", "other"];

export function AdminTab({ me }: { me: Me }) {
  const signing = useSignal<SigningKey | null>(null);
  useEffect(() => void signingKey(me.principal_id).then((found) => (signing.value = found)), []);
  return (
    <div class="columns">
      <KeyCard me={me} signing={signing} />
      <PurgeCard signing={signing.value} />
    </div>
  );
}

function KeyCard({ me, signing }: { me: Me; signing: { value: SigningKey | null } }) {
  const pem = useSignal("");
  const keyId = useSignal("");
  const held = signing.value;
  useEffect(() => void (held !== null && publicPem(held).then((text) => (pem.value = text))), [held]);
  return (
    <section class="card" aria-labelledby="key-title">
      <h2 id="key-title">Your signing key</h2>
      {held === null ? (
        <>
          <p>Erasing needs a request signed by a key that is registered to you. The key is made in this browser and cannot leave it.</p>
          <button type="button" class="primary" onClick={() => void makeKey(me.principal_id).then((made) => (signing.value = made))}>Make a key</button>
        </>
      ) : (
        <>
          <label>Public key, for another admin to register <textarea readOnly rows={5} value={pem.value} /></label>
          {held.keyId === null ? (
            <form class="actions" onSubmit={(event) => {
              event.preventDefault();
              void nameKey(me.principal_id, held, keyId.value.trim()).then((named) => (signing.value = named));
            }}>
              <label class="grow">Key id that the registration gave
                <input value={keyId.value} pattern="key_[0-9a-f]{32}" required onInput={(e) => (keyId.value = e.currentTarget.value)} />
              </label>
              <button type="submit">Use it</button>
            </form>
          ) : (
            <p class="muted">Registered as <span class="id">{held.keyId}</span>. A new key works 24 hours after its registration.</p>
          )}
        </>
      )}
    </section>
  );
}

function PurgeCard({ signing }: { signing: SigningKey | null }) {
  const ids = useSignal("");
  const reason = useSignal(REASONS[0] as string);
  const word = useSignal("");
  const shown = useSignal<Purge | null>(null);
  const failed = useSignal<string | null>(null);
  const list = ids.value.split(/[\s,]+/).filter(Boolean);
  const purge = async (dryRun: boolean) => {
    failed.value = null;
    const body = JSON.stringify({ memory_ids: list, dry_run: dryRun, reason: reason.value });
    const path = `${apiBase()}/purge`;
    try {
      const headers = await signedHeaders(signing as SigningKey, new URL(path, location.href).href, body);
      shown.value = await call<Purge>("POST", "/purge", { body, headers: { ...headers, ...key() } });
      word.value = "";
    } catch (error) {
      shown.value = null;
      failed.value = inWords(error);
    }
  };
  const ready = signing !== null && signing.keyId !== null && list.length > 0;
  const dry = shown.value;
  return (
    <section class="card" aria-labelledby="purge-title">
      <h2 id="purge-title">Erase memories</h2>
      <p class="muted">A dry run first: it counts what would go. Erasing cannot be undone.</p>
      <label>Memory ids <textarea rows={3} value={ids.value} placeholder="mem_…"
        onInput={(e) => { ids.value = e.currentTarget.value; shown.value = null; }} /></label>
      <label>Reason
        <select value={reason.value} onChange={(e) => { reason.value = e.currentTarget.value; shown.value = null; }}>
          {REASONS.map((r) => <option key={r} value={r}>{r.replaceAll("_", " ")}</option>)}
        </select>
      </label>
      <button type="button" disabled={!ready} onClick={() => void purge(true)}>Dry run</button>
      {signing === null && <p class="muted">Make a signing key first.</p>}
      {failed.value !== null && <p class="banner bad" role="alert">{failed.value}</p>}
      {dry !== null && (
        <div role="status">
          <p>{dry.dry_run ? "Would erase" : "Erased"} {dry.erased.length} memories; {dry.held.length} on legal hold, {dry.not_found.length} not found.</p>
          <ul class="plain">{Object.entries(dry.counts).filter(([, n]) => n > 0).map(([table, n]) => <li key={table}>{n} × {table.replaceAll("_", " ")}</li>)}</ul>
          {!dry.dry_run && <p class="muted">{dry.remains}</p>}
        </div>
      )}
      {dry?.dry_run === true && dry.erased.length > 0 && (
        <form class="actions" onSubmit={(event) => { event.preventDefault(); if (word.value === "erase") void purge(false); }}>
          <label class="grow">Type <strong>erase</strong> to confirm <input value={word.value} autocomplete="off" onInput={(e) => (word.value = e.currentTarget.value)} /></label>
          <button type="submit" class="danger" disabled={word.value !== "erase"}>Erase for good</button>
        </form>
      )}
    </section>
  );
}
