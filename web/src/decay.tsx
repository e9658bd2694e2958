/** What retention has taken from view, and the scheduled reports: ids and dates, the text of one on demand. */

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import { call, idempotencyKey } from "./api";
import { after, Pages } from "./parts";
import { Fault, useRequest } from "./request";
import { Inline } from "./text";
import { day, when } from "./time";
import type { DecayReport, DecayRow, Memory } from "./types";

interface Listed {
  report_id: string;
  created_at: string;
  counts: DecayReport["counts"];
}

async function decayed(cursor: string | null) {
  const found = await call<{ memories: DecayRow[]; next_cursor: string | null }>("GET", `/decayed?limit=50${after(cursor)}`);
  return { rows: found.memories, next: found.next_cursor };
}

async function reports(cursor: string | null) {
  const found = await call<{ reports: Listed[]; next_cursor: string | null }>("GET", `/decay-reports?limit=20${after(cursor)}`);
  return { rows: found.reports, next: found.next_cursor };
}

const REASONS = { per_chunk: "an expiry date of its own", kind_policy: "the retention of its kind" };

function total(counts: Record<string, number>): number {
  return Object.values(counts).reduce((sum, n) => sum + n, 0);
}

export function DecayTab() {
  return (
    <div class="sections">
      <section aria-labelledby="decayed-title">
        <h2 id="decayed-title">Decayed now</h2>
        <Pages load={decayed}>
          {(rows) =>
            rows.length === 0 ? (
              <p class="muted">Nothing has decayed. Memories leave recall when their own expiry or the retention of their kind is over.</p>
            ) : (
              <Rows rows={rows} label="Decayed memories" date="Decayed" />
            )
          }
        </Pages>
      </section>
      <Reports />
    </div>
  );
}

function Reports() {
  const opened = useSignal<DecayReport | null>(null);
  const { busy, failed, run } = useRequest();
  const toggle = (id: string) => {
    if (opened.value?.report_id === id) opened.value = null;
    else run(async () => { opened.value = await call<DecayReport>("GET", `/decay-reports/${id}`); });
  };
  return (
    <section aria-labelledby="reports-title">
      <h2 id="reports-title">Reports</h2>
      <Fault why={failed} />
      <Pages load={reports}>
        {(rows) =>
          rows.length === 0 ? (
            <p class="muted">No report yet: one is written every day.</p>
          ) : (
            <ul class="reports">
              {rows.map((r) => {
                const open = opened.value?.report_id === r.report_id;
                return (
                  <li key={r.report_id}>
                    <button type="button" disabled={busy} aria-expanded={open} onClick={() => toggle(r.report_id)}>{when(r.created_at)}</button>
                    <span class="muted">{total(r.counts.decayed)} decayed, {total(r.counts.expiring)} soon</span>
                    {open && opened.value !== null && <Report report={opened.value} />}
                  </li>
                );
              })}
            </ul>
          )
        }
      </Pages>
    </section>
  );
}

function Report({ report }: { report: DecayReport }) {
  return (
    <article class="card" aria-label={`Report of ${when(report.at)}`}>
      <h3>As of {when(report.at)}, looking ahead to {day(report.until)}</h3>
      <div class="scroll" tabIndex={0} role="region" aria-label="By kind">
        <table>
          <thead><tr><th scope="col">Kind</th><th scope="col">Kept for</th><th scope="col">Decayed</th><th scope="col">Soon</th></tr></thead>
          <tbody>
            {Object.entries(report.retention).sort().map(([kind, days]) => (
              <tr key={kind}>
                <th scope="row">{kind}</th><td>{days} days</td>
                <td>{report.by_kind[kind]?.decayed ?? 0}</td><td>{report.by_kind[kind]?.expiring ?? 0}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {report.expiring.length > 0 && <Rows rows={report.expiring} label="Memories that will decay" date="Decays" />}
      {report.page !== null && <p><a href={report.page} target="_blank" rel="noreferrer">The report as a page</a> <span class="muted">(the link works for five minutes)</span></p>}
    </article>
  );
}

function Rows({ rows, label, date }: { rows: DecayRow[]; label: string; date: string }) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={label}>
      <table>
        <thead><tr><th scope="col">Text</th><th scope="col">Memory</th><th scope="col">Kind</th><th scope="col">Space</th><th scope="col">{date}</th><th scope="col">Because of</th></tr></thead>
        <tbody>{rows.map((row) => <RowOf key={row.memory_id} row={row} />)}</tbody>
      </table>
    </div>
  );
}

function RowOf({ row }: { row: DecayRow }) {
  const open = useSignal(false);
  return (
    <>
      <tr>
        <td>
          <button type="button" class="small" aria-expanded={open.value} aria-label={`${open.value ? "Close" : "Read"} ${row.memory_id}`} onClick={() => (open.value = !open.value)}>
            {open.value ? "Close" : "Read"}
          </button>
        </td>
        <td class="id">{row.memory_id}</td><td>{row.kind}</td><td>{row.space.replaceAll("_", " ")}</td>
        <td>{day(row.expiry)}</td><td>{REASONS[row.retention_reason]}</td>
      </tr>
      {open.value && <tr><td colSpan={6} class="wide"><Read row={row} /></td></tr>}
    </>
  );
}

/** The text as it was while it was remembered; whoever has read it may renew it. */
function Read({ row }: { row: DecayRow }) {
  const memory = useSignal<Memory | null>(null);
  const until = useSignal<string | null>(null);
  const reading = useRequest();
  const renewing = useRequest();
  const outcome = useRef<HTMLParagraphElement>(null);
  useEffect(() => {
    const before = new Date(Math.min(Date.parse(row.expiry) - 1_000, Date.now())).toISOString();
    reading.run(async () => {
      memory.value = await call<Memory>("GET", `/memories/${row.memory_id}?at=${before}`);
    });
  }, []);
  const renew = () =>
    renewing.run(async () => {
      const done = await call<{ expires_at: string }>("POST", `/memories/${row.memory_id}/renew`, {
        body: { version: row.version }, headers: idempotencyKey(),
      });
      until.value = done.expires_at;
      outcome.current?.focus();
    });
  const found = memory.value;
  return (
    <div class="read">
      <Fault why={reading.failed} />
      {found === null && reading.failed === null && <p class="muted" aria-busy="true">Loading…</p>}
      {found !== null && (
        <>
          {found.title !== null && <h3 dir="auto"><Inline text={found.title} /></h3>}
          <p class="stored" dir="auto"><Inline text={found.text} /></p>
          <p class="muted">Said {found.author !== null && <>by <Inline text={found.author} />, </>}{day(found.observed_at ?? found.created_at)}.</p>
          <Fault why={renewing.failed} />
          <p ref={outcome} tabIndex={-1} role="status">{until.value !== null && `Renewed: it is remembered until ${day(until.value)}.`}</p>
          {until.value === null && (
            <div class="actions">
              <button type="button" disabled={renewing.busy} onClick={renew}>Renew</button>
              <span class="muted">Its retention begins again today.</span>
            </div>
          )}
        </>
      )}
    </div>
  );
}
