/** The shell: session, tabs, notices. */

import { useSignal } from "@preact/signals";
import { render } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";

import { AdminTab } from "./admin";
import { call, inWords, Offline, online } from "./api";
import { AuditTab } from "./audit";
import { refusal, session, signIn, signOut, start } from "./auth";
import { ConflictsTab } from "./conflicts";
import { DecayTab } from "./decay";
import { departures, flush, UNDO_MS, undo } from "./decide";
import { DecidedTab } from "./decided";
import { Help, help, listenForHelp } from "./keys";
import { notice } from "./notice";
import { Failed, Loading } from "./parts";
import { QuarantineTab } from "./quarantine";
import * as q from "./queue";
import { QueueTab } from "./review";
import { excerpt, Inline } from "./text";
import type { Me, Proposal } from "./types";
import "./style.css";

interface Tab {
  name: string;
  title: string;
  capability: string;
}

const TABS: Tab[] = [
  { name: "queue", title: "Queue", capability: "reviewer" },
  { name: "quarantine", title: "Quarantine", capability: "reviewer" },
  { name: "decided", title: "Decided", capability: "reviewer" },
  { name: "conflicts", title: "Conflicts", capability: "reviewer" },
  { name: "decay", title: "Decay", capability: "reviewer" },
  { name: "audit", title: "Audit", capability: "auditor" },
  { name: "admin", title: "Admin", capability: "admin" },
];

function App() {
  useEffect(() => {
    start().catch(() => (online.value = false));
    const leave = () => void flush();
    addEventListener("pagehide", leave);
    return () => removeEventListener("pagehide", leave);
  }, []);
  switch (session.value) {
    case "starting":
      return <main>{online.value ? <Loading what="Starting…" /> : <Unreachable />}</main>;
    case "signed-out":
      return <Welcome />;
    default:
      return <SignedIn />;
  }
}

function Welcome() {
  return (
    <main>
      <div class="state">
        <h1>Remembrancer</h1>
        <p>Decide what your agents may remember.</p>
        {refusal.value !== null && <p class="banner bad" role="alert">{refusal.value}</p>}
        <button type="button" class="primary" onClick={() => void signIn()}>Sign in</button>
      </div>
    </main>
  );
}

function Unreachable() {
  return (
    <div class="state" role="alert">
      <h1>The service cannot be reached</h1>
      <button type="button" onClick={() => location.reload()}>Try again</button>
    </div>
  );
}

function SignedIn() {
  const me = useSignal<Me | null>(null);
  const failed = useSignal<string | null>(null);
  const hash = useSignal(location.hash);
  const enter = () => {
    call<Me>("GET", "/me").then(
      (found) => { me.value = found; failed.value = null; },
      (error: unknown) => (failed.value = error instanceof Offline ? "" : inWords(error)),
    );
  };
  useEffect(() => {
    const changed = () => {
      hash.value = location.hash;
      followLink();
    };
    addEventListener("hashchange", changed);
    followLink();
    enter();
    const deaf = listenForHelp();
    return () => {
      removeEventListener("hashchange", changed);
      deaf();
    };
  }, []);
  if (me.value === null) {
    if (failed.value === "") return <main><Failed title="The service cannot be reached" why="Nothing was changed." retry={enter} /></main>;
    if (failed.value !== null) return <Refused why={failed.value} />;
    return <main><Loading what="Loading…" /></main>;
  }
  const mine = TABS.filter((tab) => (me.value as Me).capabilities.includes(tab.capability));
  const tab = mine.find((t) => t.name === hash.value.split("/")[1]) ?? mine[0];
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); (document.querySelector<HTMLElement>(".detail") ?? document.querySelector<HTMLElement>("main h1"))?.focus(); }}>
        Skip to the content
      </a>
      <Header tabs={mine} tab={tab} />
      <Banners />
      <main id="main">
        <Title tab={tab} />
        <Content name={tab?.name} part={hash.value.split("/")[2]} me={me.value} />
      </main>
      <Notices />
      {help.value && <Help />}
    </>
  );
}

/** `#/queue/prop_…` puts that proposal in focus. */
function followLink(): void {
  const [, tab, id] = location.hash.split("/");
  if (tab === "queue" && id !== undefined && id !== q.focused.value) q.focus(id);
}

function Refused({ why }: { why: string }) {
  return (
    <main>
      <div class="state" role="alert">
        <h1>You cannot enter</h1>
        <p>{why}</p>
        <button type="button" onClick={signOut}>Sign out</button>
      </div>
    </main>
  );
}

function Title({ tab }: { tab: Tab | undefined }) {
  const title = tab?.title ?? "Nothing here";
  useEffect(() => {
    document.title = `${title} · Remembrancer`;
  }, [title]);
  return <h1 class="out-of-sight" tabIndex={-1}>{title}</h1>;
}

function Header({ tabs, tab }: { tabs: Tab[]; tab: Tab | undefined }) {
  const waiting = q.queue.value.length;
  const bar = useRef<HTMLElement>(null);
  // On a phone the bar is wider than the screen.
  useLayoutEffect(() => bar.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" }), [tab]);
  return (
    <header class="top">
      <span class="brand">Remembrancer</span>
      <nav class="tabs" aria-label="Sections" ref={bar}>
        {tabs.map((t) => (
          <a key={t.name} href={`#/${t.name}`} aria-current={t === tab ? "page" : undefined}>
            {t.title}
            {t.name === "queue" && waiting > 0 && <>{" "}<span class="count">{waiting}{q.more.value ? "+" : ""}</span></>}
          </a>
        ))}
      </nav>
      <div class="who">
        <button type="button" class="quiet" onClick={() => (help.value = true)}>Keys <kbd>?</kbd></button>
        <button type="button" class="quiet" onClick={() => void flush().then(signOut)}>Sign out</button>
      </div>
    </header>
  );
}

function Banners() {
  return (
    <div class="banners">
      {session.value === "expired" && (
        <div class="banner bad" role="alert">
          <p>Your session is over. What you were typing is still here: copy it before you sign in again.</p>
          <div><button type="button" onClick={() => void signIn()}>Sign in again</button></div>
        </div>
      )}
      {session.value !== "expired" && !online.value && (
        <div class="banner bad" role="alert"><p>The service cannot be reached. What you see may be old, and nothing can be decided.</p></div>
      )}
      {session.value !== "expired" && online.value && q.loaded.value && q.failure.value !== null && (
        <div class="banner bad" role="alert"><p>The queue could not be refreshed: {q.failure.value}</p></div>
      )}
    </div>
  );
}

function Content({ name, part, me }: { name: string | undefined; part: string | undefined; me: Me }) {
  switch (name) {
    case "queue": return <QueueTab />;
    case "quarantine": return <QuarantineTab />;
    case "decided": return <DecidedTab />;
    case "conflicts": return <ConflictsTab />;
    case "decay": return <DecayTab />;
    case "audit": return <AuditTab />;
    case "admin": return <AdminTab me={me} part={part} />;
    default: return <div class="state"><h2>There is nothing here for you</h2><p class="muted">Ask an admin for the reviewer, auditor or admin capability.</p></div>;
  }
}

/** A decision that can still be taken back comes first; news that are not bad go by themselves. */
function Notices() {
  const held = departures.value.filter((d) => !d.sent);
  const last = held.at(-1);
  const shown = notice.value;
  useEffect(() => {
    if (shown === null || shown.tone === "bad") return;
    const timer = window.setTimeout(() => (notice.value = null), UNDO_MS);
    return () => window.clearTimeout(timer);
  }, [shown]);
  return (
    <div class="notices" role="status">
      {last !== undefined && (
        <div class="notice" key={(last.proposals[0] as Proposal).proposal_id}>
          <span class="grow">
            {last.decision.kind === "reject" ? "Rejecting" : last.decision.supersede ? "Approving, superseding" : "Approving"}{" "}
            {last.proposals.length > 1 ? `${last.proposals.length} proposals` : <q><Inline text={excerpt((last.proposals[0] as Proposal).content, 40)} /></q>}
            {held.length > 1 && <span class="muted"> and {held.length - 1} before</span>}
          </span>
          <button type="button" onClick={undo}>Undo <kbd>U</kbd></button>
          <span class="lapse" aria-hidden="true" />
        </div>
      )}
      {last === undefined && shown !== null && (
        <div class={`notice ${shown.tone}`}>
          <span class="grow">{shown.text}</span>
          <button type="button" class="quiet" onClick={() => (notice.value = null)}>Dismiss</button>
        </div>
      )}
    </div>
  );
}

render(<App />, document.getElementById("app") as HTMLElement);
