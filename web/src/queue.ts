/** The review queue: what waits, what is selected, decisions under way and how they ended. */

import { batch, computed, signal } from "@preact/signals";

import { ApiProblem, call, inWords } from "./api";
import type { Proposal, RowOutcome, Statistics } from "./types";

export const UNDO_MS = 5_000;
const REFRESH_MS = 15_000;

export type Decision =
  | { kind: "approve"; supersede: boolean; overrideReason?: string }
  | { kind: "reject"; reason?: string };

interface Waiting {
  proposal: Proposal;
  decision: Decision;
  timer: number;
}

export interface Notice {
  tone: "info" | "good" | "bad";
  text: string;
  undo?: string;
}

const all = signal<Proposal[]>([]);
export const loaded = signal(false);
export const failure = signal<string | null>(null);
export const focused = signal<string | null>(null);
export const selected = signal<ReadonlySet<string>>(new Set());
export const notice = signal<Notice | null>(null);
export const outcomes = signal<ReadonlyMap<string, string>>(new Map());
/** What the focused proposal read like before it changed under the reader. */
export const drifted = signal<{ id: string; before: string } | null>(null);
export const statistics = signal<Statistics | null>(null);
const waiting = signal<ReadonlyMap<string, Waiting>>(new Map());

/** What is shown: without those whose decision is on its way. */
export const queue = computed(() => all.value.filter((p) => !waiting.value.has(p.proposal_id)));
export const current = computed(() => queue.value.find((p) => p.proposal_id === focused.value) ?? null);

export async function load(): Promise<void> {
  try {
    const found: Proposal[] = [];
    let cursor: string | null = null;
    do {
      const next: string = cursor === null ? "" : `&cursor=${encodeURIComponent(cursor)}`;
      const page: { proposals: Proposal[]; next_cursor: string | null } = await call(
        "GET", `/proposals?status=pending&limit=200${next}`,
      );
      found.push(...page.proposals);
      cursor = page.next_cursor;
    } while (cursor !== null && found.length < 2_000);
    batch(() => {
      noteDrift(found);
      all.value = found;
      loaded.value = true;
      failure.value = null;
      if (focused.value === null) focused.value = queue.value[0]?.proposal_id ?? null;
    });
    statistics.value = await call("GET", "/stats/review");
  } catch (error) {
    failure.value = inWords(error);
  }
}

function noteDrift(found: Proposal[]): void {
  const before = current.value;
  if (before === null) return;
  const after = found.find((p) => p.proposal_id === before.proposal_id);
  if (after !== undefined && after.content_digest !== before.content_digest) {
    drifted.value = { id: before.proposal_id, before: before.content };
  }
}

let timer: number | undefined;
export function keepFresh(): () => void {
  timer = window.setInterval(() => void load(), REFRESH_MS);
  return () => window.clearInterval(timer);
}

export function move(by: number): void {
  const at = queue.value.findIndex((p) => p.proposal_id === focused.value);
  const next = queue.value[Math.max(0, Math.min(queue.value.length - 1, at + by))];
  if (next !== undefined) focus(next.proposal_id);
}

export function focus(id: string): void {
  focused.value = id;
  history.replaceState(null, "", `#/queue/${id}`);
}

export function toggle(id: string): void {
  const next = new Set(selected.value);
  if (!next.delete(id)) next.add(id);
  selected.value = next;
}

/** Take it out of the list at once; the request leaves when the undo window closes. */
export function decide(proposal: Proposal, decision: Decision): void {
  const at = queue.value.findIndex((p) => p.proposal_id === proposal.proposal_id);
  const following = queue.value[at + 1] ?? queue.value[at - 1] ?? null;
  const id = proposal.proposal_id;
  const pending = window.setTimeout(() => void send(id), UNDO_MS);
  batch(() => {
    waiting.value = new Map(waiting.value).set(id, { proposal, decision, timer: pending });
    const verb = decision.kind === "reject" ? "Rejected" : decision.supersede ? "Approved, superseding" : "Approved";
    notice.value = { tone: "good", text: `${verb}.`, undo: id };
    drifted.value = null;
    if (following !== null) focus(following.proposal_id);
    else focused.value = null;
  });
}

export function undo(): void {
  const id = notice.value?.undo;
  const held = id === undefined ? undefined : waiting.value.get(id);
  if (id === undefined || held === undefined) return;
  window.clearTimeout(held.timer);
  batch(() => {
    drop(id);
    focus(id);
    notice.value = { tone: "info", text: "Taken back. Nothing was sent." };
  });
}

function drop(id: string): Waiting | undefined {
  const next = new Map(waiting.value);
  const held = next.get(id);
  next.delete(id);
  waiting.value = next;
  return held;
}

async function send(id: string, keepalive = false): Promise<void> {
  const held = waiting.value.get(id);
  if (held === undefined) return;
  const { proposal, decision } = held;
  try {
    await call("POST", `/proposals/${id}/${decision.kind}`, {
      body: bodyOf(proposal, decision),
      headers: { "Idempotency-Key": crypto.randomUUID() },
      keepalive,
    });
    batch(() => {
      all.value = all.value.filter((p) => p.proposal_id !== id);
      drop(id);
      if (notice.value?.undo === id) notice.value = { tone: "good", text: notice.value.text };
    });
  } catch (error) {
    // Honest rollback: it stands in the list again, with the reason.
    batch(() => {
      drop(id);
      notice.value = { tone: "bad", text: inWords(error) };
      focus(id);
    });
    if (error instanceof ApiProblem) {
      if (error.problem.code === "digest_mismatch") drifted.value = { id, before: proposal.content };
      await load();
    }
  }
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

/** Leaving the page sends what waits. */
export function flush(): void {
  for (const [id, held] of waiting.value) {
    window.clearTimeout(held.timer);
    void send(id, true);
  }
}

export async function edit(proposal: Proposal, content: string, title: string): Promise<string | null> {
  const rest = {
    kind: proposal.kind,
    source: proposal.source,
    assertion_kind: proposal.assertion_kind,
    data_subjects: proposal.data_subjects,
    entities: proposal.entities,
    relations: proposal.relations,
    ...present({
      domain: proposal.domain,
      author: proposal.author,
      observed_at: proposal.observed_at,
      valid_from: proposal.valid_from,
      valid_to: proposal.valid_to,
      expires_at: proposal.memory_expires_at,
      title: title.trim() || null,
    }),
  };
  try {
    await call("POST", `/proposals/${proposal.proposal_id}/edit`, {
      body: { content_digest: proposal.content_digest, proposal: { ...rest, content } },
      headers: { "Idempotency-Key": crypto.randomUUID() },
    });
  } catch (error) {
    return inWords(error);
  }
  drifted.value = null;
  await load();
  drifted.value = null;
  notice.value = { tone: "good", text: "Edited: screened and scored anew." };
  return null;
}

function present(values: Record<string, string | null>): Record<string, string> {
  return Object.fromEntries(Object.entries(values).filter((entry): entry is [string, string] => entry[1] !== null));
}

/** Decide all that is selected in one request; every row says how it ended. */
export async function decideSelected(kind: "approve" | "reject"): Promise<void> {
  const chosen = queue.value.filter((p) => selected.value.has(p.proposal_id)).slice(0, 100);
  const rows = chosen.map((p) => ({ proposal_id: p.proposal_id, decision: kind, content_digest: p.content_digest }));
  try {
    const answer = await call<{ rows: RowOutcome[] }>("POST", "/proposals/decide", {
      body: { rows },
      headers: { "Idempotency-Key": crypto.randomUUID() },
    });
    const done = answer.rows.filter((row) => row.outcome === "done").length;
    batch(() => {
      outcomes.value = new Map(answer.rows.map((row) => [row.proposal_id, outcomeInWords(row)]));
      selected.value = new Set();
      const rest = answer.rows.length - done;
      notice.value = {
        tone: rest === 0 ? "good" : "bad",
        text: `${done} ${kind === "approve" ? "approved" : "rejected"}${rest === 0 ? "." : `, ${rest} not: see the rows.`}`,
      };
    });
    await load();
  } catch (error) {
    notice.value = { tone: "bad", text: inWords(error) };
  }
}

function outcomeInWords(row: RowOutcome): string {
  if (row.outcome === "done") return "done";
  if (row.outcome === "not_attempted") return "not attempted: the time ran out";
  switch (row.code) {
    case "already_decided":
      return `already ${row.winner?.status ?? "decided"} by ${row.winner?.decided_by ?? "somebody else"}`;
    case "digest_mismatch":
      return "the text changed since you read it";
    case "invalid_input":
      return "held by the screen: approve it alone, with a reason";
    default:
      return (row.code ?? "failed").replaceAll("_", " ");
  }
}
