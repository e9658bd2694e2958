/** The review queue: what waits, what is in focus, what is selected, and what changed under the reader. */

import { batch, computed, signal } from "@preact/signals";

import { ApiProblem, call, inWords, online } from "./api";
import { session } from "./auth";
import type { Proposal, Statistics } from "./types";

const REFRESH_MS = 15_000;
const RETRY_MS = 3_000;
const PAGE = 50;

interface Page {
  proposals: Proposal[];
  next_cursor: string | null;
}

const rows = signal<Proposal[]>([]);
/** Ids whose decision is on its way: not shown. */
export const leaving = signal<ReadonlySet<string>>(new Set());
const cursor = signal<string | null>(null);
export const more = computed(() => cursor.value !== null);

export const loaded = signal(false);
export const failure = signal<string | null>(null);
export const statistics = signal<Statistics | null>(null);
export const focused = signal<string | null>(null);
/** The proposal in focus when it is not in the list: decided, expired, or further down than was read. */
const apart = signal<Proposal | null>(null);
export const missing = signal<string | null>(null);
/** Selected as they were read: a batch binds to that. */
export const selected = signal<ReadonlyMap<string, Proposal>>(new Map());
/** What the proposal in focus was before it changed under the reader. */
export const drifted = signal<Proposal | null>(null);

export const queue = computed(() => rows.value.filter((p) => !leaving.value.has(p.proposal_id)));
export const current = computed(
  () =>
    queue.value.find((p) => p.proposal_id === focused.value) ??
    (apart.value?.proposal_id === focused.value ? apart.value : null),
);

/** Grows with each decision that arrived: an answer from before it shows what is gone. */
let version = 0;
let running = false;
let again = false;

/** Read the head of the list anew, and the proposal in focus when it is not in there. */
export async function refresh(): Promise<void> {
  again = true;
  if (running) return;
  running = true;
  try {
    while (again) {
      again = false;
      const began = version;
      const page = await call<Page>("GET", `/proposals?status=pending&limit=${PAGE}`);
      if (began !== version) {
        again = true;
        continue;
      }
      merge(page);
      await follow(new Set(page.proposals.map((p) => p.proposal_id)));
      statistics.value = await call("GET", "/stats/review");
    }
    failure.value = null;
  } catch (error) {
    failure.value = inWords(error);
  } finally {
    running = false;
  }
}

function merge({ proposals, next_cursor }: Page): void {
  const last = proposals.at(-1);
  const read = new Set(proposals.map((p) => p.proposal_id));
  const further =
    next_cursor === null || last === undefined
      ? []
      : rows.value.filter((p) => !read.has(p.proposal_id) && Date.parse(p.expires_at) >= Date.parse(last.expires_at));
  batch(() => {
    proposals.forEach(noteDrift);
    rows.value = [...proposals, ...further];
    if (further.length === 0) cursor.value = next_cursor;
    loaded.value = true;
    if (focused.value === null) focused.value = queue.value[0]?.proposal_id ?? null;
  });
}

function noteDrift(after: Proposal): void {
  const before = current.value;
  if (before?.proposal_id !== after.proposal_id || before.content_digest === after.content_digest) return;
  // The reader compares with what they read, however often it changed since.
  if (drifted.value?.proposal_id !== after.proposal_id) drifted.value = before;
}

let extending = false;

/** Read the next page, if there is one. */
export async function extend(): Promise<void> {
  const from = cursor.value;
  if (from === null || extending) return;
  extending = true;
  try {
    const page = await call<Page>("GET", `/proposals?status=pending&limit=${PAGE}&cursor=${encodeURIComponent(from)}`);
    const known = new Set(rows.value.map((p) => p.proposal_id));
    batch(() => {
      rows.value = [...rows.value, ...page.proposals.filter((p) => !known.has(p.proposal_id))];
      cursor.value = page.next_cursor;
    });
  } catch (error) {
    failure.value = inWords(error);
  } finally {
    extending = false;
  }
}

/** Read the proposal in focus by itself when it is not among those that were just read: not in the list, or further down. */
async function follow(read: ReadonlySet<string>): Promise<void> {
  const id = focused.value;
  if (id === null || !loaded.value || read.has(id)) return;
  try {
    const found = await call<Proposal>("GET", `/proposals/${encodeURIComponent(id)}`);
    batch(() => {
      noteDrift(found);
      apart.value = found;
      missing.value = null;
      rows.value = rows.value.flatMap((p) => (p.proposal_id !== id ? [p] : found.status === "pending" ? [found] : []));
    });
  } catch (error) {
    if (!(error instanceof ApiProblem)) throw error;
    batch(() => {
      rows.value = rows.value.filter((p) => p.proposal_id !== id);
      missing.value = id;
      apart.value = null;
    });
  }
}

/** Live while the tab is seen: every quarter of a minute, sooner after a fault, at once on coming back. */
export function keepFresh(): () => void {
  let timer = 0;
  let stopped = false;
  const tick = async () => {
    if (document.visibilityState === "visible" && session.value === "signed-in") await refresh();
    if (stopped) return;
    window.clearTimeout(timer);
    timer = window.setTimeout(() => void tick(), online.value && failure.value === null ? REFRESH_MS : RETRY_MS);
  };
  const back = () => void tick();
  void tick();
  addEventListener("online", back);
  document.addEventListener("visibilitychange", back);
  return () => {
    stopped = true;
    window.clearTimeout(timer);
    removeEventListener("online", back);
    document.removeEventListener("visibilitychange", back);
  };
}

let place = 0;

export function move(by: number): void {
  const list = queue.value;
  const at = list.findIndex((p) => p.proposal_id === focused.value);
  // What was in focus may have left the list: its place has not.
  const from = at >= 0 ? at : by > 0 ? place - 1 : place;
  const next = list[Math.max(0, Math.min(list.length - 1, from + by))];
  if (next !== undefined) focus(next.proposal_id);
}

export function focus(id: string): void {
  const at = queue.value.findIndex((p) => p.proposal_id === id);
  batch(() => {
    focused.value = id;
    if (drifted.value?.proposal_id !== id) drifted.value = null;
    missing.value = null;
  });
  history.replaceState(null, "", `#/queue/${id}`);
  if (at >= 0) place = at;
  else void follow(new Set()).catch((error: unknown) => (failure.value = inWords(error)));
  if (at >= queue.value.length - 10) void extend();
}

export function toggle(proposal: Proposal): void {
  const next = new Map(selected.value);
  if (!next.delete(proposal.proposal_id)) next.set(proposal.proposal_id, proposal);
  selected.value = next;
}

/** These leave the list while their decision is on its way; the focus goes on to what follows. */
export function hide(ids: string[]): void {
  const gone = new Set(ids);
  const list = queue.value;
  const at = list.findIndex((p) => p.proposal_id === focused.value);
  batch(() => {
    leaving.value = new Set([...leaving.value, ...ids]);
    selected.value = new Map([...selected.value].filter(([id]) => !gone.has(id)));
    if (focused.value !== null && gone.has(focused.value)) {
      const next = list.slice(at + 1).find((p) => !gone.has(p.proposal_id)) ?? queue.value.at(-1);
      drifted.value = null;
      if (next === undefined) focused.value = null;
      else focus(next.proposal_id);
    }
  });
}

/** They stand in the list again. */
export function restore(ids: string[]): void {
  leaving.value = new Set([...leaving.value].filter((id) => !ids.includes(id)));
}

/** Decided: they do not come back. */
export function remove(ids: string[]): void {
  version += 1;
  batch(() => {
    rows.value = rows.value.filter((p) => !ids.includes(p.proposal_id));
    restore(ids);
  });
}
