/** Decisions: held back for a moment so that they can be undone, sent once, rolled back when they fail. */

import { batch, signal } from "@preact/signals";

import { ApiProblem, call, idempotencyKey, inWords, Offline, online } from "./api";
import { notice, say } from "./notice";
import * as q from "./queue";
import { now } from "./time";
import type { Proposal, RowOutcome } from "./types";

export const UNDO_MS = 5_000;
/** Rows of one request. */
export const BATCH = 100;

export type Decision =
  | { kind: "approve"; supersede: boolean; overrideReason?: string }
  | { kind: "reject"; reason?: string };

interface Departure {
  proposals: Proposal[];
  decision: Decision;
  timer: number;
  sent: boolean;
}

/** How one row of a batch ended. */
export interface Ending {
  proposal: Proposal;
  done: boolean;
  words: string;
  /** What it is now, when it changed since it was selected. */
  changed: Proposal | null;
}

export const departures = signal<readonly Departure[]>([]);
export const endings = signal<readonly Ending[]>([]);

/** Why this cannot be decided now, or null. */
export function hindrance(proposal: Proposal): string | null {
  if (proposal.status !== "pending") return "It is decided.";
  if (Date.parse(proposal.expires_at) <= now.value) return "Its time is over.";
  if (proposal.masked) return "Personal data is masked for you: somebody with that capability must decide.";
  if (q.drifted.value?.proposal_id === proposal.proposal_id) return "It changed: read the change first.";
  if (!online.value) return "The service cannot be reached: nothing can be decided now.";
  return null;
}

/** Take them out of the list at once; the request leaves when the undo window closes. */
export function decide(proposals: Proposal[], decision: Decision): void {
  const departure: Departure = { proposals, decision, sent: false, timer: 0 };
  departure.timer = window.setTimeout(() => void send(departure), UNDO_MS);
  batch(() => {
    departures.value = [...departures.value, departure];
    // What is said from here on is of this decision or of a later one.
    notice.value = null;
    q.hide(ids(departure));
  });
}

export function decideSelected(kind: Decision["kind"]): void {
  const chosen = [...q.selected.value.values()].slice(0, BATCH);
  if (chosen.length === 0 || !online.value) return;
  batch(() => {
    // What is more than one request takes stays selected.
    q.selected.value = new Map([...q.selected.value].slice(BATCH));
    endings.value = [];
    decide(chosen, kind === "approve" ? { kind, supersede: false } : { kind });
  });
}

export function undo(): void {
  const held = departures.value.findLast((d) => !d.sent);
  if (held === undefined) return;
  window.clearTimeout(held.timer);
  batch(() => {
    drop(held);
    q.restore(ids(held));
    q.focus((held.proposals[0] as Proposal).proposal_id);
    say("info", "Taken back. Nothing was sent.");
  });
}

/** Leaving the page sends what waits. */
export function flush(): Promise<unknown> {
  return Promise.all(
    departures.value.filter((d) => !d.sent).map((d) => {
      window.clearTimeout(d.timer);
      return send(d, true);
    }),
  );
}

function ids(departure: Departure): string[] {
  return departure.proposals.map((p) => p.proposal_id);
}

function drop(departure: Departure): void {
  departures.value = departures.value.filter((d) => d !== departure);
}

async function send(departure: Departure, keepalive = false): Promise<void> {
  departure.sent = true;
  departures.value = [...departures.value];
  try {
    if (departure.proposals.length === 1) await sendOne(departure, keepalive);
    else await sendMany(departure, keepalive);
  } catch (error) {
    rollBack(departure, error);
  }
  await q.refresh();
}

async function sendOne(departure: Departure, keepalive: boolean): Promise<void> {
  const { decision } = departure;
  const proposal = departure.proposals[0] as Proposal;
  await call("POST", `/proposals/${proposal.proposal_id}/${decision.kind}`, {
    body: bodyOf(proposal, decision), headers: idempotencyKey(), keepalive,
  });
  batch(() => {
    drop(departure);
    q.remove([proposal.proposal_id]);
    say("good", `${past(decision)}.`);
  });
}

/** Honest: it stands in the list again, with the reason. */
function rollBack(departure: Departure, error: unknown): void {
  const words = inWords(error);
  batch(() => {
    drop(departure);
    q.restore(ids(departure));
    say("bad", error instanceof Offline ? `${words} Your decision may not have arrived; what you see will tell.` : words);
    const proposal = departure.proposals[0] as Proposal;
    // What the reader decided on, so that the change can be shown.
    if (error instanceof ApiProblem && error.problem.code === "digest_mismatch") q.drifted.value = proposal;
    q.focus(proposal.proposal_id);
  });
}

async function sendMany(departure: Departure, keepalive: boolean): Promise<void> {
  const { proposals, decision } = departure;
  const answer = await call<{ rows: RowOutcome[] }>("POST", "/proposals/decide", {
    body: {
      rows: proposals.map((p) => ({ proposal_id: p.proposal_id, decision: decision.kind, content_digest: p.content_digest })),
    },
    headers: idempotencyKey(),
    keepalive,
  });
  const ended = await Promise.all(answer.rows.map((row, index) => ending(row, proposals[index] as Proposal, decision)));
  const done = ended.filter((e) => e.done);
  const failed = ended.length - done.length;
  batch(() => {
    drop(departure);
    q.remove(done.map((e) => e.proposal.proposal_id));
    q.restore(ids(departure));
    endings.value = ended;
    say(failed === 0 ? "good" : "bad", `${done.length} ${past(decision).toLowerCase()}${failed === 0 ? "." : `, ${failed} not: see the list.`}`);
  });
}

async function ending(row: RowOutcome, proposal: Proposal, decision: Decision): Promise<Ending> {
  if (row.outcome === "done") return { proposal, done: true, words: past(decision).toLowerCase(), changed: null };
  if (row.code !== "digest_mismatch") return { proposal, done: false, words: failureInWords(row), changed: null };
  const words = "it changed since you selected it";
  try {
    return { proposal, done: false, words, changed: await call<Proposal>("GET", `/proposals/${proposal.proposal_id}`) };
  } catch (error) {
    // The rows beside it are decided, whatever became of this one.
    return { proposal, done: false, words: `${words}. ${inWords(error)}`, changed: null };
  }
}

function failureInWords(row: RowOutcome): string {
  if (row.outcome === "not_attempted") return "not attempted: the time ran out";
  switch (row.code) {
    case "already_decided":
      return `already ${row.winner?.status ?? "decided"} by ${row.winner?.decided_by ?? "somebody else"}`;
    case "invalid_input":
      return "held by the screen: approve it alone, with a reason";
    case "input_rejected":
      return "refused by the screen: it can be edited or rejected";
    case "expired":
      return "expired before it was decided";
    case "not_found":
      return "it is gone";
    default:
      return [(row.code ?? "failed").replaceAll("_", " "), ...(row.errors ?? []).map((e) => e.detail)].join(": ");
  }
}

function past(decision: Decision): string {
  if (decision.kind === "reject") return "Rejected";
  return decision.supersede ? "Approved, superseding" : "Approved";
}

function bodyOf(proposal: Proposal, decision: Decision): object {
  const digest = { content_digest: proposal.content_digest };
  if (decision.kind === "reject") return { ...digest, ...(decision.reason ? { reason: decision.reason } : {}) };
  const { conflict } = proposal;
  return {
    ...digest,
    ...(decision.supersede && conflict !== null
      ? { supersedes: { memory_id: conflict.memory_id, version: conflict.version } }
      : {}),
    ...(decision.overrideReason ? { override_reason: decision.overrideReason } : {}),
  };
}

/** Replace title and text of the proposal as it was when the editing began, and nothing else; why it did not work, or null. */
export async function edit(proposal: Proposal, content: string, title: string): Promise<string | null> {
  const { kind, source, assertion_kind, data_subjects, entities, relations } = proposal;
  const optional = {
    domain: proposal.domain,
    author: proposal.author,
    observed_at: proposal.observed_at,
    valid_from: proposal.valid_from,
    valid_to: proposal.valid_to,
    expires_at: proposal.memory_expires_at,
    source_uri: proposal.source_uri,
    revision: proposal.revision,
    title: title.trim() || null,
  };
  const present = Object.fromEntries(Object.entries(optional).filter(([, value]) => value !== null));
  const said = { content, kind, source, assertion_kind, data_subjects, entities, relations, ...present };
  try {
    await call("POST", `/proposals/${proposal.proposal_id}/edit`, {
      body: { content_digest: proposal.content_digest, proposal: said },
      headers: idempotencyKey(),
    });
  } catch (error) {
    const words = inWords(error);
    if (error instanceof ApiProblem && error.problem.code === "digest_mismatch") q.drifted.value = proposal;
    await q.refresh();
    return words;
  }
  await q.refresh();
  // The change that the refresh found is the reader's own.
  q.drifted.value = null;
  say("good", "Edited: screened and scored anew.");
  return null;
}
