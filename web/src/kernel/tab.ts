// Which session a page may have: that of the page before it in its tab, never one that another page has.
//
// Every page holds a Web Lock that names its session and itself for as long as it lives, so who has which can be seen. A
// page that goes leaves its name to the one that follows in the tab. One that lives has left nothing, and so a copied tab,
// which has a copy of its storage, knows of no page before. Nothing is guessed from how long something takes.

/** What a page needs of its browser. */
export interface Around {
  storage: Pick<Storage, "getItem" | "setItem" | "removeItem">;
  /** There is none where the page came over a plain connection from elsewhere. */
  locks: Pick<LockManager, "request" | "query"> | undefined;
}

/** Which session to ask for, and those that other pages have. */
export interface Wish {
  resume: string;
  taken?: string[];
}

const [SESSION, LEFT] = ["session", "left"];
const lockOf = (session: string, page: string): string => `session-${session}/${page}`;

export class Tab {
  /** The name of this page. */
  private readonly page = Array.from(crypto.getRandomValues(new Uint32Array(4)), (one) => one.toString(36)).join("");
  /** The session that is this page's, or its tab's. */
  private own: string | null = null;
  /** Pages of this tab that may not be gone yet. */
  private before: string[] = [];
  private held: { session: string; release: () => void } | null = null;

  constructor(private readonly around: Around) {}

  async claim(): Promise<Wish> {
    const { storage, locks } = this.around;
    const kept = storage.getItem(SESSION);
    this.before = (storage.getItem(LEFT) ?? "").split(" ").filter((page) => page !== "");
    storage.removeItem(LEFT);
    if (locks === undefined) return { resume: "latest" };
    if (kept === null) return { resume: "latest", taken: await this.taken(locks) };
    if (this.before.length > 0) {
      this.own = kept;
      void this.hold(kept);
      // The page that was here before a reload lets go when it is gone, however long that takes.
      for (const page of this.before) await locks.request(lockOf(kept, page), () => undefined);
      this.before = [];
    }
    // One at a time: of several copies the first may have what nobody else has.
    return locks.request("sessions", async () => {
      if (!(await this.taken(locks)).includes(kept)) {
        await this.hold(kept);
        this.own = kept;
        return { resume: kept };
      }
      this.release();
      this.own = null;
      storage.removeItem(SESSION);
      return { resume: "new" };
    });
  }

  /** The daemon gave this session. */
  given(session: string): void {
    void this.hold(session);
    this.own = session;
    this.around.storage.setItem(SESSION, session);
  }

  /** The page goes for good. */
  leave(): void {
    if (this.own !== null) this.around.storage.setItem(LEFT, [...this.before, this.page].join(" "));
    this.release();
  }

  /** The sessions that other pages have. */
  private async taken(locks: Pick<LockManager, "query">): Promise<string[]> {
    const { held = [], pending = [] } = await locks.query();
    const names = [...held, ...pending].map((lock) => /^session-(.+)\/(.+)$/.exec(lock.name ?? ""));
    return [...new Set(names.flatMap((name) => (name?.[1] === undefined || name[2] === this.page ? [] : [name[1]])))];
  }

  /** Let others see that this page has a session; no other lock has that name, so nobody is waited for. */
  private hold(session: string): Promise<void> {
    const { locks } = this.around;
    if (locks === undefined || this.held?.session === session) return Promise.resolve();
    this.release();
    return new Promise((seen) => {
      const end = new Promise<void>((release) => { this.held = { session, release }; });
      locks.request(lockOf(session, this.page), () => { seen(); return end; }).catch(() => seen());
    });
  }

  private release(): void {
    this.held?.release();
    this.held = null;
  }
}
