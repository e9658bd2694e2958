/** Small parts that several tabs use. */

import { useComputed } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import type { ComponentChildren } from "preact";

import { inWords } from "./api";
import { left, urgency } from "./time";
import type { Scores, Screen } from "./types";

/** Touches the page only when its words change, however many there are. */
export function Countdown({ until, warn, critical }: { until: string; warn: number; critical: number }) {
  const shown = useComputed(() => `${urgency(until, warn, critical)}|${left(until)}`);
  const [how, words] = shown.value.split("|");
  return (
    <span class={`chip countdown ${how}`} title={`decide before ${new Date(until).toLocaleString()}`}>
      {words}
    </span>
  );
}

export function VerdictChip({ screen }: { screen: Screen }) {
  const words = { clean: "clean", quarantine: "held by the screen", reject: "refused by the screen" };
  return <span class={`chip verdict ${screen.verdict}`}>{words[screen.verdict]}</span>;
}

export function ScreenWords({ screen }: { screen: Screen }) {
  const families = [...new Set(screen.signals.map((s) => s.family.replaceAll("_", " ")))];
  const learned = screen.layer2;
  const parts = families.map((f) => `rules: ${f}`);
  if (learned?.reason) parts.push(learned.reason.replaceAll("_", " "));
  else if (learned !== undefined && learned.verdict !== "clean") {
    parts.push(`learned screen: ${Math.round((learned.score ?? 0) * 100)} % likely an attack`);
  }
  // Spans point into what is shown; what was found may be in what reading leaves out.
  if (parts.length === 0) {
    parts.push(
      screen.verdict === "clean"
        ? "The screen found nothing suspicious."
        : "What the screen found is not shown: hidden characters or links, which reading leaves out.",
    );
  }
  return <p class="muted">{parts.join(" · ")}</p>;
}

function Score({ name, value, why }: { name: string; value: number; why: string }) {
  return (
    <div class="score">
      <span class="score-name">{name}</span>
      <meter min={0} max={1} value={value} aria-label={name} />
      <span class="score-value">{value.toFixed(2)}</span>
      <span class="muted">{why}</span>
    </div>
  );
}

export function ScoreBars({ scores }: { scores: Scores }) {
  const { novelty, salience, confidence } = scores;
  const novel = novelty.exact_duplicate
    ? "an exact duplicate of a live memory"
    : novelty.nearest_cosine === null
      ? "the first memory of its kind"
      : `the nearest memory is ${Math.round(novelty.nearest_cosine * 100)} % alike`;
  const named = salience.entity_count === 1 ? "1 entity" : `${salience.entity_count} entities`;
  const salient = `${salience.characters} characters (${salience.band}), ${named} named`;
  const sure = confidence.factors.map((f) => f.reason).join(" ") || "stated, no reason to doubt";
  return (
    <section aria-label="Scores" class="scores">
      <Score name="Novelty" value={novelty.value} why={novel} />
      <Score name="Salience" value={salience.value} why={salient} />
      <Score name="Confidence" value={confidence.value} why={sure} />
    </section>
  );
}

export function Failed({ title, why, retry }: { title: string; why: string; retry: () => void }) {
  return (
    <div class="state" role="alert">
      <h2>{title}</h2>
      <p>{why}</p>
      <button type="button" onClick={retry}>Try again</button>
    </div>
  );
}

export function Loading({ what }: { what: string }) {
  return <div class="state" aria-busy="true"><p>{what}</p></div>;
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return <div class="state"><h2>{title}</h2><p class="muted">{children}</p></div>;
}

export interface Page<T> {
  rows: T[];
  next: string | null;
}

/** What a list route answers, page by page. `again` reads from the start when it changes. */
export function Pages<T>({
  load, children, again,
}: { load: (cursor: string | null) => Promise<Page<T>>; children: (rows: T[], reload: () => void) => ComponentChildren; again?: unknown }) {
  const [page, setPage] = useState<Page<T> | null>(null);
  const [failed, setFailed] = useState<string | null>(null);
  const turn = useRef(0);
  const take = (from: string | null, before: T[]) => {
    const mine = ++turn.current;
    load(from).then(
      ({ rows, next }) => {
        // An answer that was overtaken is of another list.
        if (mine !== turn.current) return;
        setPage({ rows: [...before, ...rows], next });
        setFailed(null);
      },
      (error: unknown) => { if (mine === turn.current) setFailed(inWords(error)); },
    );
  };
  const reload = () => take(null, []);
  useEffect(() => {
    setPage(null);
    reload();
  }, [again]);
  if (failed !== null) return <Failed title="This could not be loaded" why={failed} retry={reload} />;
  if (page === null) return <Loading what="Loading…" />;
  return (
    <>
      {children(page.rows, reload)}
      {page.next !== null && (
        <button type="button" class="further" onClick={() => take(page.next, page.rows)}>Show more</button>
      )}
    </>
  );
}

/** The cursor as a query string goes on. */
export function after(cursor: string | null): string {
  return cursor === null ? "" : `&cursor=${encodeURIComponent(cursor)}`;
}

/** Where the keyboard goes on when what it was on is gone. */
export function focusTitle(): void {
  document.querySelector<HTMLElement>("main h1")?.focus({ preventScroll: true });
}
