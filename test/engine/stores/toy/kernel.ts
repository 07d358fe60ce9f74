// Threads, runs, events and deferred calls of the toy: a thread is read, decided about and written in one go.

import type { EventLog } from "../../../../src/agent/core/stores.ts";
import { latestLeaseEnd } from "../../../../src/engine/stores/clock-set-back.ts";
import { inTurn } from "../../../../src/engine/stores/document-rules.ts";
import { eventsExpired, noSuchMessage, threadExists } from "../../../../src/engine/stores/errors.ts";
import { writesOf } from "../../../../src/engine/stores/event-writes.ts";
import { PAST } from "../../../../src/engine/stores/fair-queue.ts";
import type { Kernel } from "../../../../src/engine/stores/kernel.ts";
import type { ControlChannel } from "../../../../src/engine/stores/local-bus.ts";
import { cursorOf, follow, type Log } from "../../../../src/engine/stores/log.ts";
import { entriesOfPending } from "../../../../src/engine/stores/log-rows.ts";
import type { MessageText, PendingEvent } from "../../../../src/engine/stores/outcomes.ts";
import { hasEnd, pendingEvent, stamp } from "../../../../src/engine/stores/outcomes.ts";
import type { Position } from "../../../../src/engine/stores/page.ts";
import {
  decodePosition,
  encodePosition,
  fitting,
  pageOf,
  standsBehind,
} from "../../../../src/engine/stores/page.ts";
import { ownerOf, threadOf } from "../../../../src/engine/stores/row-keys.ts";
import { canContinue } from "../../../../src/engine/stores/rules.ts";
import { assertSeen, seenOf } from "../../../../src/engine/stores/seen.ts";
import { fits } from "../../../../src/engine/stores/thread-filter.ts";
import { headAfter, type Lookups, runAhead, type View } from "../../../../src/engine/stores/thread-head.ts";
import { omitUndefined } from "../../../../src/lib/omit-undefined.ts";
import type { Owner } from "../../../../src/protocol/ids.ts";
import { carriedOut, newFile } from "./effects.ts";
import { type Files, nameOf, type ThreadFile } from "./files.ts";

export function toyKernel(files: Files, control: ControlChannel): Kernel<string> {
  const { limits, busy } = files;
  const staging = new Map<string, { readonly token: string; readonly messages: MessageText[] }>();
  const fileOf = (owner: Owner, id: string) => files.thread(nameOf(owner, id));

  return {
    limits,
    ref: nameOf,
    async change(name, lookups, decide) {
      const [now, [text, thread_id]] = [limits.now(), threadOf(name)];
      const owner = ownerOf(text);
      const before = files.thread(name);
      const { writes, result, tell } = decide(viewOf(files, name, before, lookups));
      let after = before;
      for (const write of writes) {
        const head = headAfter(after?.head, write, owner);
        const staged =
          write.write === "create_thread" && write.staged ? staging.get(name)?.messages : undefined;
        after = head && carriedOut({ ...(after ?? newFile(staged)), head }, write, now);
      }
      if (after && writes.length > 0) files.writeThread(name, after);
      else if (before && !after) files.removeThread(name, owner);
      for (const write of writes) {
        if (write.write === "create_thread") staging.delete(name);
        if (write.write === "clear_thread") files.removeDocuments(name);
        if (write.write === "hold_run" || write.write === "renew_run") busy.hold(owner.tenant, name);
        if (write.write === "cancel_run")
          push(files.log({ owner, thread_id, run_id: write.run }), write.pending, 1);
      }
      if (tell) control.publish(tell);
      return result(now);
    },
    async stage(name, token, messages) {
      const staged = staging.get(name) ?? { token, messages: [] };
      if (files.thread(name) || staged.token !== token) throw threadExists(threadOf(name)[1]);
      staged.messages.push(...messages);
      staging.set(name, staged);
    },
    async unstage(name, token) {
      if (staging.get(name)?.token === token) staging.delete(name);
    },
    async eachDue({ limit, except }, look) {
      const found = [];
      const taken = files.names("none");
      while (found.length < limit) {
        const name = busy.take(new Set(except));
        if (name === undefined) break;
        taken.push(name);
        const looked = await look(name);
        if (looked.found !== undefined) found.push(looked.found);
      }
      // A thread that was looked at in vain is looked at again.
      for (const name of taken) {
        const { tenant } = ownerOf(threadOf(name)[0]);
        if (busy.isBusy(tenant, name) && busy.heldUntil(name) === undefined) busy.wait(tenant, name);
      }
      return found;
    },
    logOf: async (lease) => files.log(lease).entries,
    async findCall(token) {
      const all = files.threads().flatMap((file) => file.calls);
      const call = all.find(({ token_hash }) => token_hash === token);
      return call && { thread: nameOf(call.owner, call.thread_id), call_id: call.call_id };
    },
    async dueCalls(limit) {
      const now = limits.now();
      const due = files.threads().flatMap((file) => {
        const at = file.callsAt ?? Infinity;
        const isTime = at <= now || at > latestLeaseEnd(now, limits.leaseMs);
        const call_ids = file.calls.filter((call) => canContinue(call, now)).map(({ call_id }) => call_id);
        return isTime && call_ids.length > 0 && !runAhead(file.head) ? [{ file, at, call_ids }] : [];
      });
      due.sort((a, b) => a.at - b.at);
      const ofTenants = Map.groupBy(due, ({ file }) => file.head.owner.tenant);
      return inTurn([...ofTenants.values()], limit).map(({ file, call_ids }) => {
        const { owner, id } = file.head;
        files.write(nameOf(owner, id), { ...file, callsAt: now + limits.leaseMs });
        return { owner, thread_id: id, call_ids };
      });
    },
    runs: {
      get: async (owner, id, run) => recordIn(fileOf(owner, id), run),
      known: async (owner, id, key) => fileOf(owner, id)?.runs.find((run) => run.key === key)?.record,
      active: async (owner, id) => recordIn(fileOf(owner, id), fileOf(owner, id)?.head.active?.run),
      async list(owner, id, page) {
        const all = fileOf(owner, id)?.runs.map(({ record }) => record) ?? [];
        return pageIn(all, page, (run) => ({ updatedAt: all.indexOf(run), id: run.id }));
      },
      async begun(owner, id, behind) {
        const { begun = [] } = fileOf(owner, id) ?? {};
        const next = behind ? begun.indexOf(behind) + 1 || begun.length : 0;
        return recordIn(fileOf(owner, id), behind === undefined ? begun.at(-1) : begun[next]);
      },
      place: async (owner, id, run) => (fileOf(owner, id)?.begun.indexOf(run) ?? -1) + 1 || undefined,
      subscribe: (listener) => control.subscribe(listener),
      inbox: async (lease) => [...files.heldBy(lease).inbox],
      async renew(lease) {
        const { active } = files.heldBy(lease).head;
        busy.hold(lease.owner.tenant, nameOf(lease.owner, lease.thread_id));
        return omitUndefined({ stop: active?.stop });
      },
      waiting: async () => busy.waiting(),
    },
    threads: {
      get: async (owner, id) => measured(fileOf(owner, id))?.thread,
      measured: async (owner, id) => measured(fileOf(owner, id)),
      bytes: async (owner, id) => measured(fileOf(owner, id))?.bytes ?? 0,
      async list(owner, query) {
        const all = files.threads(owner).flatMap((file) => measured(file)?.thread ?? []);
        const asked = all.filter((thread) => fits(thread, query));
        return pageIn(asked, query, ({ id, updated_at }) => ({ id, updatedAt: Date.parse(updated_at) }));
      },
      async message(owner, id, asked) {
        const { messages = [] } = fileOf(owner, id) ?? {};
        const found = asked === undefined ? messages.at(-1) : messages.find((each) => each.id === asked);
        return found && JSON.parse(found.text);
      },
      async messagePage(owner, id, { after, limit, bytes }) {
        const { messages = [] } = fileOf(owner, id) ?? {};
        const from = after === undefined ? 0 : messages.findIndex((each) => each.id === after) + 1;
        if (after !== undefined && from === 0) throw noSuchMessage(after);
        const next = messages.slice(from, from + (limit ?? messages.length)).map(({ text }) => text);
        const sizes = next.map((text) => ({ bytes: Buffer.byteLength(text) }));
        const texts = next.slice(0, fitting(sizes, bytes));
        return { texts, isLast: from + texts.length === messages.length };
      },
      state: async (owner, id) => Object.fromEntries(fileOf(owner, id)?.state ?? []),
    },
    deferredCalls: {
      get: async ({ owner, thread_id, call_id }) => callIn(fileOf(owner, thread_id), call_id),
    },
    events: eventLog(files, control),
  };
}

const eventLog = (files: Files, control: ControlChannel): EventLog => ({
  async append(lease, events) {
    const [before, now] = [files.heldBy(lease), files.limits.now()];
    const pending = events.map(pendingEvent);
    const atEnd = hasEnd(pending) ? { inbox: before.inbox, stamp: stamp(lease, now) } : undefined;
    const { appended, writes } = writesOf(pending, atEnd);
    const after = writes.reduce((file, write) => carriedOut(file, write, now), before);
    if (writes.length > 0) files.writeThread(nameOf(lease.owner, lease.thread_id), after);
    push(files.log(lease), appended, lease.epoch);
    if (atEnd && after.head.queue.length > 0) control.publish({ call: "waiting" });
  },
  async bounds(run) {
    const isThere = runIn(files.thread(nameOf(run.owner, run.thread_id)), run.run_id);
    return isThere ? files.log(run).bounds : { first: 0, last: 0 };
  },
  seen: async (run, cursor) => seenOf(files.log(run).held, cursor),
  read: (run, from, signal) =>
    follow(() => {
      const [log, after] = [files.log(run), cursorOf(from)];
      assertSeen(log.held, after);
      const older = () => {
        throw eventsExpired(after.seq);
      };
      return { log, after, older };
    }, signal),
  // No write fails that readers would wait for.
  fail() {},
});

function push(log: Log, pending: readonly PendingEvent[], epoch: number): void {
  for (const entry of entriesOfPending(pending, epoch, log.last + pending.length)) log.push(entry);
  if (hasEnd(pending)) log.end();
  else log.ring();
}

const callIn = (file: ThreadFile | undefined, id: string | undefined) =>
  file?.calls.find(({ call_id }) => call_id === id);
const runIn = (file: ThreadFile | undefined, id: string | undefined) =>
  file?.runs.find(({ record }) => record.id === id);
const recordIn = (file: ThreadFile | undefined, id: string | undefined) => runIn(file, id)?.record;

function measured(file: ThreadFile | undefined) {
  if (!file) return undefined;
  const status = runAhead(file.head) === undefined ? file.thread.status : "busy";
  const bytes = file.messages.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0);
  return { thread: { ...file.thread, status, message_count: file.messages.length } as const, bytes };
}

function pageIn<T>(all: readonly T[], page: { limit: number; cursor?: string }, of: (each: T) => Position) {
  const last = page.cursor === undefined ? undefined : decodePosition(page.cursor);
  const found = all
    .filter((each) => !last || standsBehind(last, of(each)))
    .sort((a, b) => (standsBehind(of(a), of(b)) ? -1 : 1));
  return pageOf(found, page.limit, (each) => encodePosition(of(each)));
}

function viewOf(files: Files, name: string, file: ThreadFile | undefined, asked: Lookups): View {
  const { tenant } = ownerOf(threadOf(name)[0]);
  return {
    now: files.limits.now(),
    head: file?.head,
    until: file?.isHeld ? (files.busy.heldUntil(name) ?? PAST) : 0,
    known: file?.runs.find(({ key }) => key !== undefined && key === asked.key)?.record,
    run: runIn(file, asked.run),
    next: asked.next && file && runIn(file, runAhead(file.head)),
    hasMessage: file?.messages.some(({ id }) => id === asked.message),
    isLast: file?.messages.at(-1)?.id === asked.last,
    inbox: file?.inbox.map(({ id }) => id),
    call: callIn(file, asked.call),
    calls: file?.calls,
    busyThreads: files.busy.count(tenant) - Number(files.busy.isBusy(tenant, name)),
  };
}
