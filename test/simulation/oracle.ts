import {
  type Answer,
  type Attempt,
  type CallRecord,
  type History,
  problemOf,
  type Rotation,
  type Run,
} from './history.js'
import { CALM_AT_MS, SETTLE_MS, type Story } from './story.js'

/** What is left in the world after everything was closed. */
export interface Leftovers {
  readonly timers: readonly string[]
  readonly connections: number
  readonly endlessKeys: readonly string[]
  /** That nobody will end. */
  readonly transactions: number
}

export interface Verdict {
  /** The broken promises. Each begins with the name of its rule. */
  readonly broken: readonly string[]
  /** Doubles that the story itself explains, by their cause. */
  readonly explained: readonly string[]
}

/** Clocks are at most so much slower or faster. */
export const DRIFT = 0.03
/** A reply that waits no longer than this is no fault: the store's own time limit is 250 ms. */
const HARMLESS_DELAY_MS = 50
/** `max-age`, and the time limits of a fetch under way. */
const KEYS_KEPT_MS = 10_000 + 2000
/** A caller's clock has ticks. */
const TICK_MS = 20

/**
 * What the contract promises whatever the store is, checked after a story from what its parties saw. Nothing here
 * uses code of the package.
 */
export abstract class Oracle implements Verdict {
  readonly broken: string[] = []
  readonly explained: string[] = []
  protected readonly story: Story
  protected readonly history: History
  readonly #storedAs: ReadonlyMap<string, string>

  constructor(story: Story, history: History, storedAs: ReadonlyMap<string, string>) {
    this.story = story
    this.history = history
    this.#storedAs = storedAs
  }

  judge(left: Leftovers): Verdict {
    this.#effects()
    this.ofStore()
    this.#rotations()
    this.#waits()
    this.#leftovers(left)
    return this
  }

  /** What this store promises besides. */
  protected abstract ofStore(): void
  /** Why the story lets a later run have an effect, too. */
  protected abstract whyAgain(earlier: Run, later: Run): string | undefined
  /** What is wrong with an answer. `own` is the run of this attempt. */
  protected abstract faultOf(attempt: Attempt, answer: Answer, own?: Run): string | undefined

  /** When a run got its key. */
  protected reservedAt({ startedAt }: Run): number {
    return startedAt
  }

  /** A handler has its effect at most once for a key, unless the story says why not. */
  #effects(): void {
    const runs = this.history.runs
      .filter(({ effectAt }) => effectAt !== undefined)
      .sort((one, other) => this.reservedAt(one) - this.reservedAt(other))
    for (const [index, later] of runs.entries()) {
      for (const earlier of runs.slice(0, index)) {
        if (earlier.recordName !== later.recordName) continue
        const cause = this.whyAgain(earlier, later)
        if (cause === undefined) {
          this.broken.push(
            `once: run ${earlier.number} and run ${later.number} of ${later.recordName} both had an effect`,
          )
        } else this.explained.push(cause)
      }
    }
  }

  /** Each answer is right for what was asked, and for what had happened. */
  protected answers(): void {
    for (const attempt of this.history.attempts) {
      if (attempt.answer === undefined) continue
      const own = this.history.runs.find((run) => run.attempt === attempt)
      const fault = this.faultOf(attempt, attempt.answer, own)
      if (fault !== undefined) this.broken.push(`${fault} (attempt ${attempt.number})`)
    }
  }

  /** A 422 says that somebody has used the key with another body. */
  protected faultOf422(attempt: Attempt): string | undefined {
    const isReused = this.others(attempt).some(({ call }) => call.body !== attempt.call.body)
    return unless(isReused, 'key: 422 for the same body')
  }

  /** Who has asked for the same key before an attempt got its answer. */
  protected others(attempt: Attempt): readonly Attempt[] {
    const { call, gotAt = 0 } = attempt
    return this.attemptsOf(call.recordName).filter(
      (each) => each !== attempt && (each.receivedAt ?? Infinity) <= gotAt,
    )
  }

  /** No token passes twice. */
  protected tokens(
    passes: (attempt: Attempt) => boolean,
    mayPassAgain: (earlier: Attempt, later: Attempt) => boolean,
  ): void {
    const passed = new Map<string, Attempt>()
    for (const attempt of this.history.attempts.filter(passes)) {
      const { token, number } = attempt
      const earlier = passed.get(token.id)
      passed.set(token.id, attempt)
      if (earlier !== undefined && !mayPassAgain(earlier, attempt))
        this.broken.push(`token: ${token.id} passed twice (attempts ${earlier.number}, ${number})`)
    }
  }

  protected faultOf401(attempt: Attempt): string | undefined {
    return unless(this.#mayRefuseToken(attempt), 'own fault: 401 for a good token')
  }

  #mayRefuseToken(attempt: Attempt): boolean {
    const { token, receiver = '', sentAt, gotAt = 0 } = attempt
    const isReused = this.history.attempts.some(
      (each) =>
        each !== attempt && each.token.id === token.id && (each.receivedAt ?? Infinity) <= gotAt,
    )
    const isChanged = (how: Rotation['what']): boolean =>
      this.history.rotations.some(
        ({ kid, what, at }) => what === how && kid === token.kid && at <= gotAt,
      )
    // A receiver that stops has closed its key set, which fetches no new key any more.
    const isStopping = this.isDisturbed(receiver, sentAt, gotAt, (what) => what === 'stop receiver')
    const isUnknown = isChanged('remove') || (isChanged('add') && isStopping)
    return (isReused && this.story.isSingleUse) || isUnknown
  }

  /** Two tokens with unknown keys make a receiver fetch the keys within 10 s, and no third one does. */
  protected hasNoFetchLeft(attempt: Attempt): boolean {
    const { receiver, gotAt = 0 } = attempt
    const isRotated = ({ token, receivedAt = 0 }: Attempt): boolean =>
      this.history.rotations.some(({ kid, at }) => kid === token.kid && at <= receivedAt)
    const looked = this.history.attempts.filter(
      (each) =>
        each.receiver === receiver && (each.receivedAt ?? Infinity) < gotAt && isRotated(each),
    )
    return isRotated(attempt) && looked.length > 2
  }

  /** A key that the issuer has removed verifies nothing once the set that has it is too old. */
  #rotations(): void {
    const { disturbances, rotations } = this.history
    const hasJumped = disturbances.some(({ what }) => what === 'jump receiver clock')
    for (const { kid, what, at } of rotations) {
      if (what === 'add' || hasJumped) continue
      const isDown = disturbances.some((each) => each.what === 'stop issuer' && each.until >= at)
      const staleMs = isDown ? this.story.staleIfErrorSeconds * 1000 : 0
      const until = at + (KEYS_KEPT_MS + staleMs) * (1 + DRIFT)
      const used = this.history.attempts.find(
        ({ token, admittedAt = 0, isAdmitted }) =>
          isAdmitted && token.kid === kid && admittedAt > until,
      )
      if (used !== undefined)
        this.broken.push(`key: ${kid} verified attempt ${used.number} long after it was removed`)
    }
  }

  /** Nobody waits forever. */
  #waits(): void {
    for (const call of this.history.calls) {
      if (call.endedAt === undefined) this.broken.push(`waits: call ${call.number} has never ended`)
      else if (call.endedAt - call.startedAt > call.deadlineMs + TICK_MS) {
        this.broken.push(
          `waits: call ${call.number} took ${Math.round(call.endedAt - call.startedAt)} ms`,
        )
      } else if (this.#isHasty(call)) {
        this.broken.push(`waits: call ${call.number} tries again too often or too early`)
      } else if (call.answer === undefined && this.#hasTriesLeft(call)) {
        this.broken.push(`waits: call ${call.number} gave up early`)
      } else if (call.isLast && !this.#isFinal(call)) {
        this.broken.push(
          `waits: the last call of ${call.recordName} got ${call.answer?.status} ${call.answer?.body}`,
        )
      }
    }
  }

  /** Nobody makes an attempt too many, or earlier than `Retry-After` says, or replaces a token twice. */
  #isHasty({ number, maxAttempts }: CallRecord): boolean {
    const attempts = this.history.attempts.filter(({ call }) => call.number === number)
    const isEarly = ({ answer, gotAt = 0 }: Attempt, index: number): boolean =>
      gotAt + Number(answer?.headers['retry-after'] ?? 0) * 1000 >
      (attempts[index + 1]?.sentAt ?? Infinity) + TICK_MS
    const refused = attempts.filter(({ answer }) => answer?.status === 401)
    return attempts.length > maxAttempts || attempts.some(isEarly) || refused.length > 2
  }

  /** Whether it would have made another attempt within its deadline. */
  #hasTriesLeft({ number, maxAttempts, startedAt, endedAt = 0, deadlineMs }: CallRecord): boolean {
    const count = this.history.attempts.filter(({ call }) => call.number === number).length
    const longestPauseMs = Math.min(100 * 2 ** (count - 1), 5000)
    return count < maxAttempts && endedAt - startedAt + longestPauseMs + TICK_MS < deadlineMs
  }

  #isFinal(call: CallRecord): boolean {
    const { answer, name, recordName, endedAt = 0 } = call
    if (answer === undefined) return false
    // Of two last calls with one key, one may have no attempt left while the other runs.
    const isBeside = this.history.calls.some(
      (other) =>
        other !== call &&
        other.isLast &&
        other.recordName === recordName &&
        other.startedAt <= endedAt &&
        (other.endedAt ?? Infinity) >= endedAt,
    )
    if (isBeside && problemOf(answer) === 'request-in-progress') return true
    if (answer.status === 403)
      return this.history.denials.some(({ service }) => recordName.startsWith(`${service}/`))
    const isOpen =
      answer.status === 503 || problemOf(answer) === 'request-in-progress' || answer.status === 401
    return !isOpen && name !== ''
  }

  #leftovers({ timers, connections, endlessKeys, transactions }: Leftovers): void {
    if (transactions > 0)
      this.broken.push(`left: ${transactions} transactions without a time limit`)
    for (const timer of timers) this.broken.push(`left: a timer of ${timer}`)
    if (connections > 0) this.broken.push(`left: ${connections} connections`)
    for (const key of endlessKeys) this.broken.push(`left: ${key} never expires`)
  }

  /** Whether the record of a key was lost. A failover loses nothing that replicas have confirmed. */
  protected isLost(
    recordName: string,
    from: number,
    until: number,
    what: 'reservations' | 'results' = 'reservations',
  ): boolean {
    const key = `esa:k:${this.#storedAs.get(recordName)}`
    return this.history.losses.some(({ what: fault, at, keys }) => {
      if (at < from || at > until || !keys.has(key)) return false
      return what === 'results' || fault !== 'failover' || !this.story.waitsForReplicas
    })
  }

  protected isDisturbed(
    who: string,
    from: number,
    until: number,
    counts: (what: string) => boolean = () => true,
  ): boolean {
    if (counts('weather') && this.#isStormy && from < CALM_AT_MS + SETTLE_MS) return true
    return this.history.disturbances.some(
      (each) =>
        counts(each.what) &&
        (each.who === who || each.who === '') &&
        each.from <= until &&
        each.until >= from,
    )
  }

  protected hasJumped(until: number): boolean {
    return this.history.disturbances.some(
      ({ what, from }) => what === 'jump Redis clock' && from <= until,
    )
  }

  /** Whether any call of the store may time out. */
  get #isStormy(): boolean {
    const { weather, waitsForReplicas, redis } = this.story
    const { delayChance, delayMs } = weather
    if (waitsForReplicas && redis.lagMs > HARMLESS_DELAY_MS) return true
    return delayChance > 0 && delayMs > HARMLESS_DELAY_MS
  }

  /** The run whose answer it is. */
  protected runWith(answer: Answer): Run | undefined {
    return this.history.runs.find((run) => isOf(run, answer))
  }

  /** What is wrong with the answer of a run, whoever sent it. */
  protected faultOfRun(run: Run, { call }: Attempt, { headers }: Answer): string | undefined {
    if (run.recordName !== call.recordName || run.body !== call.body)
      return `answer: that of run ${run.number}, for another request`
    const { location, 'content-type': type = '' } = headers
    const hasHeaders = location === `/orders/${run.number}` && type.startsWith('text/')
    return unless(hasHeaders, `answer: run ${run.number} without its headers`)
  }

  protected attemptsOf(recordName: string): readonly Attempt[] {
    return this.history.attempts.filter(({ call }) => call.recordName === recordName)
  }

  protected runOf(recordName: string, byFence: number | undefined): Run | undefined {
    return this.runsOf(recordName).find(({ fence }) => fence === byFence)
  }

  protected runsOf(recordName: string): readonly Run[] {
    return this.history.runs.filter((run) => run.recordName === recordName)
  }
}

export const isOf = (
  of: { readonly answer?: Pick<Answer, 'status' | 'body'> },
  got: Answer,
): boolean => of.answer?.status === got.status && of.answer.body === got.body

export const unless = (isRight: boolean, fault: string): string | undefined =>
  isRight ? undefined : fault
