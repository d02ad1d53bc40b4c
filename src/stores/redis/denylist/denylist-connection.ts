import { AsyncResource } from 'node:async_hooks'
import type { DenylistFailureCode } from '../../../base/decision/denylist-event.js'
import type { Client } from '../connection/dedicated-client.js'
import { confirmHandshake, connectionFault } from '../connection/handshake.js'
import { isUnknownScript } from '../connection/link.js'
import {
  type Attempt,
  attemptFor,
  faultText,
  isServersAnswer,
  NotConfirmed,
  within,
} from '../connection/redis-deadline.js'
import type { Script } from '../connection/script.js'
import { CONNECT_TIMEOUT_MS, createClientMaker } from './reconnecting-client.js'

/** A call of a denylist script, with the time limit for its reply. */
export interface Question {
  readonly script: Script
  readonly args?: readonly string[]
  readonly timeoutMs: number
}

/** The error if a script call failed or got no reply. */
export class Unanswered extends Error {
  override readonly name = 'Unanswered'
  readonly code: DenylistFailureCode
  /** Whether the call was sent, so that it may have taken effect or still may. */
  readonly mayHaveRun: boolean

  constructor(code: DenylistFailureCode, message: string, mayHaveRun: boolean) {
    super(message)
    this.code = code
    this.mayHaveRun = mayHaveRun
  }
}

/** A connection for the scripts of a denylist, opened on demand. */
export interface DenylistConnection {
  /**
   * Calls a script once. Closes the connection if the call fails.
   *
   * @throws Unanswered
   */
  ask(question: Question): Promise<unknown>
  close(): void
}

interface ConnectionOptions {
  readonly keys: readonly string[]
  /** The longest time limit of a call, in milliseconds. */
  readonly timeoutMs: number
}

/** An error of a client. That of a cluster client has the error of a node. */
interface ConnectionFault extends Error {
  readonly lastNodeError?: Error | undefined
}

/** A server that requires a password replies with NOAUTH only to short commands. */
const WITHOUT_PASSWORD = /\bunauthenticated\b/

const answerText = (error: Error): string =>
  WITHOUT_PASSWORD.test(error.message)
    ? `NOAUTH Authentication required (${faultText(error)})`
    : faultText(error)

/** Functions of ioredis that its types omit. */
type RunScript = (script: string, ...rest: readonly (string | number)[]) => Promise<unknown>
interface Scripts {
  evalsha: RunScript
  eval: RunScript
}

export function openDenylistConnection(
  users: Client,
  { keys, timeoutMs }: ConnectionOptions,
): DenylistConnection {
  const maker = createClientMaker(users, timeoutMs)
  let client: Client | undefined
  let connecting: Promise<Client> | undefined
  /** Why a client lost its connection, or could not open one. */
  const faults = new WeakMap<Client, Error>()
  let isClosed = false

  async function connect(): Promise<Client> {
    if (isClosed) throw new Unanswered('closed', 'the denylist is closed', false)
    const fresh = maker.make()
    client = fresh
    fresh.on('error', (error: ConnectionFault) => {
      const { lastNodeError: cause = error } = error
      if (cause.message !== '') faults.set(fresh, cause)
    })
    const attempt = attemptFor(CONNECT_TIMEOUT_MS)
    try {
      await within(fresh.connect(), attempt)
      const confirming = confirmHandshake(fresh)
      if (confirming !== undefined) await within(confirming, attempt)
      maker.note(fresh)
      return fresh
    } catch (error) {
      const cause = causeOf(error, fresh)
      const text = connectionFault(fresh, cause instanceof Error ? cause : undefined)
      giveUp(fresh)
      throw unanswered(cause, { mayHaveRun: false, text })
    }
  }

  function connected(): Promise<Client> {
    if (connecting !== undefined) return connecting
    if (client?.status === 'ready') return Promise.resolve(client)
    if (client !== undefined) giveUp(client)
    const opening = connect().finally(() => (connecting = undefined))
    connecting = opening
    return opening
  }

  function giveUp(failed: Client): void {
    // If many calls failed on the same connection, the first of them has closed it already.
    if (client !== failed) return
    client = undefined
    failed.disconnect()
  }

  async function ask({ script, args = [], timeoutMs }: Question): Promise<unknown> {
    const ready = await connected()
    const scripts = ready as unknown as Scripts
    const rest = [keys.length, ...keys, ...args]
    const attempt: Attempt = { ...attemptFor(timeoutMs), mayHaveRun: true }
    try {
      return await within(scripts.evalsha(script.sha, ...rest), attempt).catch((error) => {
        if (!isUnknownScript(error)) throw error
        return within(scripts.eval(script.source, ...rest), attempt)
      })
    } catch (error) {
      giveUp(ready)
      throw unanswered(causeOf(error, ready), attempt)
    }
  }

  /** The error of a pending call says that the connection was closed, but not why. */
  const causeOf = (error: unknown, lost: Client): unknown =>
    isServersAnswer(error) ? error : (faults.get(lost) ?? error)

  return {
    ask: AsyncResource.bind(ask),
    close() {
      isClosed = true
      if (client !== undefined) giveUp(client)
    },
  }

  function unanswered(
    error: unknown,
    { mayHaveRun, text }: Pick<Attempt, 'mayHaveRun'> & { readonly text?: string },
  ): Unanswered {
    if (isClosed) return new Unanswered('closed', 'the denylist is closed', mayHaveRun)
    if (isServersAnswer(error)) return new Unanswered('server', text ?? answerText(error), false)
    const code = error instanceof NotConfirmed ? 'timeout' : 'network'
    return new Unanswered(code, text ?? faultText(error as Error), mayHaveRun)
  }
}
