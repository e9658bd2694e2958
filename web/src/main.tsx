/** The shell: session, tabs, notices. */

import { useSignal } from "@preact/signals";
import { render } from "preact";
import { useEffect } from "preact/hooks";

import { call, inWords, online } from "./api";
import { session, signIn, signOut, start } from "./auth";
import * as q from "./queue";
import { QueueTab, singleKeys } from "./review";
import { AdminTab, AuditTab, ConflictsTab, DecidedTab, QuarantineTab } from "./tabs";
import type { Me } from "./types";
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
  { name: "audit", title: "Audit", capability: "auditor" },
  { name: "admin", title: "Admin", capability: "admin" },
];

function App() {
  useEffect(() => {
    start().catch(() => (online.value = false));
    addEventListener("pagehide", q.flush);
    return () => removeEventListener("pagehide", q.flush);
  }, []);
  switch (session.value) {
    case "starting":
      return online.value ? <main class="state" aria-busy="true"><p>Starting…</p></main> : <Unreachable />;
    case "signed-out":
      return (
        <main class="state">
          <h1>Remembrancer</h1>
          <p>Decide what your agents may remember.</p>
          <button type="button" class="primary" onClick={() => void signIn()}>Sign in</button>
        </main>
      );
    default:
      return <SignedIn />;
  }
}

function Unreachable() {
  return (
    <main>
      <div class="state" role="alert">
        <h1>The service cannot be reached</h1>
        <button type="button" onClick={() => location.reload()}>Try again</button>
      </div>
    </main>
  );
}

function SignedIn() {
  const me = useSignal<Me | null>(null);
  const failed = useSignal<string | null>(null);
  const hash = useSignal(location.hash);
  useEffect(() => {
    const changed = () => (hash.value = location.hash);
    addEventListener("hashchange", changed);
    call<Me>("GET", "/me").then((found) => (me.value = found), (error: unknown) => (failed.value = inWords(error)));
    return () => removeEventListener("hashchange", changed);
  }, []);
  if (failed.value !== null) {
    return (
      <main>
        <div class="state" role="alert">
          <h1>You cannot enter</h1>
          <p>{failed.value}</p>
          <button type="button" onClick={signOut}>Sign out</button>
        </div>
      </main>
    );
  }
  if (me.value === null) return <main class="state" aria-busy="true"><p>Loading…</p></main>;
  const mine = TABS.filter((tab) => (me.value as Me).capabilities.includes(tab.capability));
  const [, asked, id] = hash.value.split("/");
  const tab = mine.find((t) => t.name === asked) ?? mine[0];
  if (tab?.name === "queue" && id !== undefined && q.focused.value === null) q.focused.value = id;
  return (
    <>
      <Header tabs={mine} tab={tab} />
      {session.value === "expired" && (
        <div class="banner bad" role="alert">
          Your session is over. <button type="button" onClick={() => void signIn()}>Sign in again</button>
        </div>
      )}
      {!online.value && <div class="banner bad" role="alert">The service cannot be reached. What you see may be old.</div>}
      <main>
        <h1 class="out-of-sight">{tab?.title ?? "Remembrancer"}</h1>
        <Content name={tab?.name} me={me.value} />
      </main>
      <Notice />
    </>
  );
}

function Header({ tabs, tab }: { tabs: Tab[]; tab: Tab | undefined }) {
  const keys = useSignal(singleKeys.on);
  return (
    <header class="top">
      <span class="brand">Remembrancer</span>
      <nav class="tabs" aria-label="Sections">
        {tabs.map((t) => (
          <a key={t.name} href={`#/${t.name}`} aria-current={t === tab ? "page" : undefined}>
            {t.title}
            {t.name === "queue" && q.queue.value.length > 0 && <span class="count">{q.queue.value.length}</span>}
          </a>
        ))}
      </nav>
      <label class="keys">
        <input type="checkbox" checked={keys.value} onChange={(event) => {
          keys.value = singleKeys.on = event.currentTarget.checked;
          localStorage.setItem("remembrancer.keys", singleKeys.on ? "on" : "off");
        }} /> Single keys
      </label>
      <button type="button" class="quiet" onClick={signOut}>Sign out</button>
    </header>
  );
}

function Content({ name, me }: { name: string | undefined; me: Me }) {
  switch (name) {
    case "queue": return <QueueTab />;
    case "quarantine": return <QuarantineTab />;
    case "decided": return <DecidedTab />;
    case "conflicts": return <ConflictsTab />;
    case "audit": return <AuditTab />;
    case "admin": return <AdminTab me={me} />;
    default: return <div class="state"><h2>There is nothing here for you</h2><p class="muted">Ask an admin for the reviewer, auditor or admin capability.</p></div>;
  }
}

function Notice() {
  const shown = q.notice.value;
  useEffect(() => {
    if (shown === null) return;
    const timer = window.setTimeout(() => (q.notice.value = null), q.UNDO_MS + 1_000);
    return () => window.clearTimeout(timer);
  }, [shown]);
  return (
    <div class="notices" role="status" aria-live="polite">
      {shown !== null && (
        <div class={`notice ${shown.tone}`}>
          <span>{shown.text}</span>
          {shown.undo !== undefined && <button type="button" onClick={q.undo}>Undo <kbd>U</kbd></button>}
        </div>
      )}
    </div>
  );
}

render(<App />, document.getElementById("app") as HTMLElement);
