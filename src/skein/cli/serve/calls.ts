// Calls between the primary process and a worker, over Node's channel between the two.

/** The methods that the other side may call. Arguments and results are copied as JSON. */
type Methods = Readonly<Record<string, (argument: never) => unknown>>;

export interface Calls<Theirs> {
  /** Calls a method of the other side. Rethrows its error as an `Error`, and throws the reason of `signal`. */
  ask<Name extends keyof Theirs & string>(
    name: Name,
    argument: Argument<Theirs[Name]>,
    signal?: AbortSignal,
  ): Promise<Result<Theirs[Name]>>;
  /** Handles an incoming message. Ignores messages of other kinds. */
  receive(message: unknown): void;
}
type Argument<F> = F extends (argument: infer A) => unknown ? A : never;
type Result<F> = F extends (...args: never) => infer R ? Awaited<R> : never;

interface Question {
  readonly skein: "ask";
  readonly id: number;
  readonly name: string;
  readonly argument: unknown;
}
interface CallReply {
  readonly skein: "answer";
  readonly id: number;
  readonly result?: unknown;
  readonly error?: string;
}

/** `send` must not throw if the other process has ended. Such a call gets no reply, so callers need a signal. */
export function createCalls<Theirs>(send: (message: object) => void, own: Methods): Calls<Theirs> {
  const pending = new Map<number, (answer: CallReply) => void>();
  let last = 0;

  const answer = async ({ id, name, argument }: Question) => {
    try {
      const result = await own[name]?.(argument as never);
      send({ skein: "answer", id, result } satisfies CallReply);
    } catch (error) {
      send({ skein: "answer", id, error: String(error) } satisfies CallReply);
    }
  };

  return {
    ask(name, argument, signal) {
      const id = ++last;
      const { promise, resolve, reject } = Promise.withResolvers<never>();
      const onAbort = () => reject(signal?.reason);
      pending.set(id, ({ result, error }) =>
        error === undefined ? resolve(result as never) : reject(new Error(error)),
      );
      signal?.addEventListener("abort", onAbort, { once: true });
      if (signal?.aborted) onAbort();
      else send({ skein: "ask", id, name, argument } satisfies Question);
      return promise.finally(() => {
        pending.delete(id);
        signal?.removeEventListener("abort", onAbort);
      });
    },
    receive(message) {
      const own = message as Partial<Question | CallReply> | null;
      if (own?.skein === "ask") void answer(own as Question);
      if (own?.skein === "answer") pending.get((own as CallReply).id)?.(own as CallReply);
    },
  };
}
