import assert from "node:assert/strict";
import test from "node:test";
import { Tab, type Around } from "./tab";

/** The locks of a browser: who dies lets go of its own, and what it waits for it will not get. */
class Locks {
  private readonly all: { name: string; owner: object; isHeld: boolean; grant: () => void }[] = [];

  of(owner: object): Around["locks"] {
    const request = (name: string, run: () => unknown): Promise<unknown> => new Promise((resolve) => {
      const lock = { name, owner, isHeld: false, grant: (): void => {
        lock.isHeld = true;
        void Promise.resolve(run()).then((answer) => { this.drop((one) => one === lock); resolve(answer); });
      } };
      this.all.push(lock);
      this.pass();
    });
    const told = (isHeld: boolean): { name: string }[] => this.all.filter((one) => one.isHeld === isHeld).map(({ name }) => ({ name }));
    return { request, query: async () => ({ held: told(true), pending: told(false) }) } as unknown as Around["locks"];
  }

  drop(isGone: (lock: { name: string; owner: object }) => boolean): void {
    for (const lock of this.all.filter(isGone)) this.all.splice(this.all.indexOf(lock), 1);
    this.pass();
  }

  private pass(): void {
    for (const lock of [...this.all]) if (!lock.isHeld && this.all.find((one) => one.name === lock.name) === lock) queueMicrotask(() => { if (!lock.isHeld && this.all.includes(lock)) lock.grant(); });
  }
}

type Page = { tab: Tab; storage: Map<string, string>; die: () => void };

/** A page of a browser, with the storage of its tab. */
function page(locks: Locks, storage = new Map<string, string>()): Page {
  const owner = {};
  const around: Around = {
    storage: { getItem: (key) => storage.get(key) ?? null, setItem: (key, value) => void storage.set(key, value), removeItem: (key) => void storage.delete(key) },
    locks: locks.of(owner),
  };
  return { tab: new Tab(around), storage, die: () => locks.drop((lock) => lock.owner === owner) };
}

const settled = (): Promise<unknown> => new Promise((done) => setTimeout(done, 0));

async function begun(locks: Locks, session: string): Promise<Page> {
  const first = page(locks);
  assert.equal((await first.tab.claim()).resume, "latest");
  first.tab.given(session);
  await settled();
  return first;
}

test("a copied tab gets a session of its own, however late the first page gets its lock", async () => {
  const locks = new Locks();
  const first = page(locks);
  await first.tab.claim();
  first.tab.given("s-1");
  // The storage is copied in the same moment.
  const copy = page(locks, new Map(first.storage));
  assert.deepEqual(await copy.tab.claim(), { resume: "new" });
  copy.tab.given("s-2");
  assert.deepEqual([first.storage.get("session"), copy.storage.get("session")], ["s-1", "s-2"]);
});

test("after a reload the session is the same, however long the page before takes to go", async () => {
  const locks = new Locks();
  const first = await begun(locks, "s-1");
  const copied = new Map(first.storage);
  first.tab.leave();
  const second = page(locks, first.storage);
  // It goes, too, before it knows anything; the first is still not gone.
  void second.tab.claim();
  second.tab.leave();
  const third = page(locks, first.storage);
  const claim = third.tab.claim();
  assert.deepEqual(await page(locks, copied).tab.claim(), { resume: "new" }, "a copy of before does not come between");
  await settled();
  first.die();
  second.die();
  assert.deepEqual(await claim, { resume: "s-1" });
});

test("a page that ended without a word leaves its session to the next of its tab", async () => {
  const locks = new Locks();
  const first = await begun(locks, "s-1");
  first.die();
  const copies = await Promise.all([page(locks, new Map(first.storage)), page(locks, new Map(first.storage))].map(({ tab }) => tab.claim()));
  assert.deepEqual(copies.map(({ resume }) => resume).sort(), ["new", "s-1"], "one of two copies");
});

test("a tab that is opened again does not wait for whoever has its session now", async () => {
  const locks = new Locks();
  const first = await begun(locks, "s-1");
  first.tab.leave();
  first.die();
  const other = page(locks);
  assert.deepEqual(await other.tab.claim(), { resume: "latest", taken: [] });
  other.tab.given("s-1");
  const again = page(locks, first.storage);
  assert.deepEqual(await again.tab.claim(), { resume: "new" });
  again.tab.given("s-2");
  // The one that has it keeps it over a reload.
  other.tab.leave();
  other.die();
  assert.deepEqual(await page(locks, other.storage).tab.claim(), { resume: "s-1" });
});

test("a new tab says which sessions other pages have; they may be about to come back to them", async () => {
  const locks = new Locks();
  await begun(locks, "s-1");
  const second = await begun(locks, "s-2");
  // The daemon was started again: the old one is nobody's.
  second.tab.given("s-3");
  await settled();
  assert.deepEqual(await page(locks).tab.claim(), { resume: "latest", taken: ["s-1", "s-3"] });
});
