import {
  type Answer,
  type Attempt,
  type Denial,
  problemOf,
  type Run,
  type SettlementRecord,
} from '../history.js'
import { DRIFT, isOf, type Leftovers, Oracle, unless, type Verdict } from '../oracle.js'
import { faultOfStep, type RecordStep } from '../records.js'
import { RETENTION_SECONDS } from '../story.js'

const DENIED_WITHIN_MS = 1000
/** From the request for a reservation to the start of its run: the time limits of the store and of `WAIT`. */
const RESERVED_WITHIN_MS = 500
/** Undoing is tried again every 250 ms, once the store answers. */
const UNDONE_WITHIN_MS = 1000

/** What a leased store promises, which is Redis. */
export class LeasedOracle extends Oracle {
  override judge(left: Leftovers): Verdict {
    return this.#areRunsDistinct() ? super.judge(left) : this
  }

  /**
   * Runs are told apart by their fences. A fence is the time of Redis, so it may come again after Redis has lost a record
   * and its clock was set back. Such a story is not judged.
   */
  #areRunsDistinct(): boolean {
    return this.history.runs.every(({ recordName, fence }) => {
      const mayRepeat = this.isLost(recordName, 0, Infinity) && this.hasJumped(Infinity)
      return !mayRepeat || this.runsOf(recordName).filter((run) => run.fence === fence).length < 2
    })
  }

  protected override ofStore(): void {
    this.#records()
    this.#settlements()
    this.answers()
    this.#repeatedAnswers()
    this.#signals()
    this.tokens(
      ({ isConsumed = false }) => isConsumed,
      (earlier) => this.#isTokenLost(earlier),
    )
    this.#denials()
  }

  protected override whyAgain(earlier: Run, later: Run): string | undefined {
    const { recordName } = later
    const [from, until] = [this.reservedAt(earlier), this.reservedAt(later)]
    const isLost = this.isLost(recordName, from, until)
    if (isLost && !this.#isRenewed(earlier, until)) return 'lost data'
    const isFreed = this.#settlementsOf(recordName).some(
      ({ as, isDone, sentAt, doneAt = Infinity }) =>
        as === 'freed' && isDone !== false && sentAt <= until && doneAt >= from,
    )
    if (isFreed) return 'settled as free'
    if (this.story.whenAbandoned === 'rerun' && this.#hasNoLease(earlier, until)) return 'rerun'
    return undefined
  }

  /** Whether a run that is still at work has written its lost record again by then. */
  #isRenewed(run: Run, until: number): boolean {
    if (run.endedAt === undefined || run.endedAt < until) return false
    const lostAt = Math.max(
      ...this.history.losses.filter(({ at }) => at <= until).map(({ at }) => at),
    )
    const { leaseSeconds, maxRunSeconds } = this.story
    const renewedAt = lostAt + (leaseSeconds * 1000 * (1 + DRIFT)) / 3 + RESERVED_WITHIN_MS
    const isRenewing = renewedAt - run.startedAt < maxRunSeconds * 1000 * (1 - DRIFT)
    // Another run may have taken the key before the next renewal.
    if (!isRenewing || until <= renewedAt || this.#whoTook(run, renewedAt) !== undefined)
      return false
    return !this.isDisturbed(run.receiver, run.startedAt, until)
  }

  /** Whether the lease of a run may be gone at that time. */
  #hasNoLease(run: Run, at: number): boolean {
    if (run.ending === 'destroys its response' && (run.endedAt ?? Infinity) <= at) return true
    const { leaseSeconds, maxRunSeconds } = this.story
    const reservedAt = this.reservedAt(run)
    const leasedUntil = reservedAt + leaseSeconds * 1000 * (1 - DRIFT)
    if (at < leasedUntil && !this.hasJumped(at)) return false
    const isOverLimit = at - reservedAt > maxRunSeconds * 1000 * (1 - DRIFT)
    return isOverLimit || this.isDisturbed(run.receiver, reservedAt, at)
  }

  /** When the server gave the key to the run. */
  protected override reservedAt({ recordName, fence, startedAt }: Run): number {
    return this.#firstStep(recordName, fence)?.at ?? startedAt
  }

  /** Each step of a record is one that the contract has, and each run has reserved its key. */
  #records(): void {
    for (const step of this.history.steps) {
      if (!step.isWrite) continue
      const fault = faultOfStep(step, this.story, RETENTION_SECONDS) ?? this.#faultOfLease(step)
      if (fault !== undefined) this.broken.push(`record: ${step.recordName} ${fault}`)
    }
    for (const run of this.history.runs) {
      if (this.#firstStep(run.recordName, run.fence) === undefined)
        this.broken.push(`record: run ${run.number} has not reserved ${run.recordName}`)
      if (run.endedAt !== undefined && run.reported === undefined && !run.isDead())
        this.broken.push(`left: nobody hears how run ${run.number} has ended`)
      const until = this.reservedAt(run)
      const before = this.runsOf(run.recordName).find(
        (each) => each.fence >= run.fence && this.reservedAt(each) < until,
      )
      // The fence is the time of the server, unless there is a record.
      const isForgotten = this.isLost(run.recordName, 0, until) || this.hasJumped(until)
      if (before !== undefined && !isForgotten)
        this.broken.push(`record: the fence of run ${run.number} is not above run ${before.number}`)
    }
  }

  /** Nobody asks for the lease of a run that has ended, or that has lasted for too long. */
  #faultOfLease({ recordName, at, sentAt, after }: RecordStep): string | undefined {
    if (after?.state !== 'r' || after.leaseMs <= 0) return undefined
    const { leaseSeconds, maxRunSeconds } = this.story
    // When the clock of Redis is set back, what is left of a lease grows.
    if (after.leaseMs > leaseSeconds * 1000 && !this.hasJumped(at)) {
      return `has a lease of ${after.leaseMs} ms`
    }
    const run = this.runOf(recordName, after.fence)
    if (run === undefined) return undefined
    const { number, startedAt, endedAt = Infinity } = run
    // A call waits until its client has connected, and is sent again if its reply is lost.
    if (sentAt > endedAt + RESERVED_WITHIN_MS)
      return `has a lease again after run ${number} has ended`
    const longestMs = maxRunSeconds * 1000 * (1 + DRIFT) + RESERVED_WITHIN_MS
    return sentAt > startedAt + longestMs
      ? `still has a lease, though run ${number} lasts for too long`
      : undefined
  }

  /** An operator settles the run that he has found. What it does later is not stored. */
  #settlements(): void {
    for (const settlement of this.history.settlements) {
      const { recordName, foundFence, isDone, sentAt, doneAt = Infinity } = settlement
      const isWritten = this.history.steps.some(
        ({ isWrite, by, at, after, ...step }) =>
          isWrite &&
          by === 'operator' &&
          step.recordName === recordName &&
          at >= sentAt &&
          at <= doneAt &&
          after?.fence === foundFence,
      )
      if (isDone && !isWritten)
        this.broken.push(`settled: ${recordName} is said to be settled, and is not`)
      const run = this.runOf(recordName, foundFence)
      if (!isDone || run === undefined || (run.endedAt ?? 0) <= doneAt) continue
      const isLost = this.isLost(recordName, run.startedAt, Infinity, 'results')
      if (run.reported === 'result_kept' && !isLost)
        this.broken.push(
          `settled: run ${run.number} stored its result after an operator settled it`,
        )
    }
  }

  protected override faultOf(
    attempt: Attempt,
    answer: Answer,
    own: Run | undefined,
  ): string | undefined {
    const type = problemOf(answer)
    if (type === undefined) return this.#faultOfResult(attempt, answer, own)
    if (own !== undefined)
      return `refused: run ${own.number} ran, and its caller got ${answer.status} ${type}`
    if (answer.status === 401) return this.faultOf401(attempt)
    if (answer.status === 403)
      return unless(this.#mayDeny(attempt), 'own fault: 403 for a caller that nobody denies')
    if (answer.status === 503) return this.#faultOf503(attempt, answer)
    return this.#faultOfKey(attempt, answer, type)
  }

  #faultOf503(attempt: Attempt, answer: Answer): string | undefined {
    if (answer.headers['retry-after'] !== '5') return 'refused: a 503 without Retry-After: 5'
    const { receiver = '', sentAt, gotAt = 0 } = attempt
    return unless(
      this.hasNoFetchLeft(attempt) || this.isDisturbed(receiver, sentAt, gotAt),
      `own fault: 503 of ${receiver}`,
    )
  }

  #faultOfKey(attempt: Attempt, answer: Answer, type: string): string | undefined {
    const { recordName } = attempt.call
    const until = attempt.gotAt ?? 0
    const found = this.history.steps.filter(
      ({ recordName: name, by, at }) =>
        name === recordName && by === attempt.receiver && at >= attempt.sentAt && at <= until,
    )
    switch (type) {
      case 'idempotency-key-reused':
        return this.faultOf422(attempt)
      case 'request-in-progress':
        if (answer.headers['retry-after'] === undefined) return 'key: 409 without Retry-After'
        return unless(
          found.some((step) => step.before?.state === 'r' && this.#mayHaveLease(step)),
          'key: in progress, but nobody has a lease',
        )
      case 'result-not-stored':
        return unless(
          found.some(({ before }) => before?.state === 'u'),
          'key: result not stored, but every result can be stored',
        )
      case 'outcome-unknown':
        return unless(
          this.story.whenAbandoned === 'refuse' && found.some((step) => this.#isAbandoned(step)),
          'key: outcome unknown, but every run has ended well',
        )
      default:
        return `key: ${answer.status} ${type}`
    }
  }

  /** Whether the record that was found has a lease, and its run has not given it up. */
  #mayHaveLease({ recordName, at, before: record }: RecordStep): boolean {
    if (record === undefined || record.leaseMs <= 0) return false
    const run = this.runOf(recordName, record.fence)
    if (run === undefined) return true
    const { ending, endedAt = Infinity, reported = '', reportedAt = Infinity } = run
    const isOver =
      (ENDED_WELL.has(reported) && reportedAt < at) ||
      (ending === 'destroys its response' && endedAt + RESERVED_WITHIN_MS < at)
    return !isOver || this.isDisturbed(run.receiver, run.startedAt, at)
  }

  /** Whether the record that was found has lost its lease, and nobody could help it. */
  #isAbandoned({ recordName, at, before: record }: RecordStep): boolean {
    if (record?.state !== 'r' || record.leaseMs > 0) return false
    const run = this.runOf(recordName, record.fence)
    return run === undefined
      ? this.#mayBeForgotten(this.#firstStep(recordName, record.fence), at)
      : this.#mayBeAbandoned(run, at)
  }

  #mayBeAbandoned(run: Run, until: number): boolean {
    if (run.ending === 'destroys its response') return true
    const lastedMs = Math.min(run.endedAt ?? until, until) - run.startedAt
    return (
      lastedMs > this.story.maxRunSeconds * 1000 * (1 - DRIFT) ||
      this.isDisturbed(run.receiver, run.startedAt - RESERVED_WITHIN_MS, until)
    )
  }

  /** A reservation that no run has seen is undone, unless its receiver dies, or is cut off when the lease ends. */
  #mayBeForgotten(reservation: RecordStep | undefined, until: number): boolean {
    if (reservation === undefined) return false
    const { by, sentAt, at } = reservation
    const isDisturbed = (what: ReadonlySet<string>, from: number, to: number): boolean =>
      this.isDisturbed(by, from, to, (each) => what.has(each))
    const endsAt = at + this.story.leaseSeconds * 1000
    return (
      this.hasJumped(until) ||
      isDisturbed(FATAL, sentAt, until) ||
      isDisturbed(CUT_OFF, endsAt - UNDONE_WITHIN_MS, endsAt)
    )
  }

  #faultOfResult(attempt: Attempt, answer: Answer, own: Run | undefined): string | undefined {
    const { recordName } = attempt.call
    const isReplayed = answer.headers['idempotent-replayed'] === 'true'
    const isSettled = this.#settlementsOf(recordName).some((each) => isOf(each, answer))
    if (isSettled && isReplayed) return undefined
    const run = this.runWith(answer)
    if (run === undefined) return `answer: ${answer.status} "${answer.body}" is of no run`
    const fault = this.faultOfRun(run, attempt, answer)
    if (fault !== undefined) return fault
    if (!isReplayed)
      return unless(run === own, `answer: that of run ${run.number} without Idempotent-Replayed`)
    if (run === own) return `answer: run ${run.number} replayed to itself`
    if (answer.headers['cache-control'] !== 'no-store') return 'answer: a replay that may be cached'
    const other = this.#whoTookOver(run)
    if (other !== undefined)
      return `answer: that of run ${run.number}, which ended after ${other} had the key`
    return STORED.has(run.ending ?? '')
      ? undefined
      : `answer: run ${run.number}, which ${run.ending}, was replayed`
  }

  /** Who had the key before the run ended. */
  #whoTookOver(run: Run): string | undefined {
    const { recordName, startedAt, endedAt = Infinity } = run
    if (this.isLost(recordName, 0, Infinity, 'results')) return undefined
    const later = this.#whoTook(run, endedAt)
    // A run before it may store its result once no record is left, not even a tombstone.
    const isFreeAgain = this.history.steps.some(
      (step) =>
        step.recordName === recordName &&
        step.before === undefined &&
        step.at >= endedAt &&
        step.after?.fence === run.fence,
    )
    const isSettled = this.#settlementsOf(recordName).some(
      ({ isDone, sentAt, doneAt = Infinity }) => isDone && sentAt > startedAt && doneAt < endedAt,
    )
    if (later !== undefined && !isFreeAgain) return `run ${later.number}`
    return isSettled ? 'an operator' : undefined
  }

  /** A run whose key another has taken learns of it with its next renewal. A run that keeps its key hears nothing. */
  #signals(): void {
    for (const run of this.history.runs) {
      const { recordName, receiver, ending, endedAt = 0, lostLeaseAt = Infinity } = run
      if (ending === 'destroys its response' && lostLeaseAt === Infinity)
        this.broken.push(`signal: run ${run.number} is over and does not learn of it`)
      const until = ending === 'destroys its response' ? endedAt : Infinity
      if (lostLeaseAt < until && !this.#mayLoseLease(run, lostLeaseAt))
        this.broken.push(`signal: run ${run.number} loses its lease without a cause`)
      const taken = this.#whoTook(run, endedAt)
      if (taken === undefined || run.ending === 'streams') continue
      const awakeAt = Math.max(taken.startedAt, ...this.#wakings(receiver, endedAt))
      const { leaseSeconds, maxRunSeconds } = this.story
      const renewedAt = awakeAt + (leaseSeconds * 1000 * (1 + DRIFT)) / 3 + RESERVED_WITHIN_MS
      const isCutOff = this.isDisturbed(
        receiver,
        taken.startedAt,
        renewedAt,
        (what) => !SPARES_LINKS.has(what),
      )
      // A run that is not renewed learns of it when its lease ends by its own clock.
      const isRenewed =
        !isCutOff && renewedAt - this.reservedAt(run) < maxRunSeconds * 1000 * (1 - DRIFT)
      const knownAt = isRenewed ? renewedAt : renewedAt + leaseSeconds * 1000 * (1 + DRIFT)
      if (endedAt < knownAt || lostLeaseAt <= knownAt) continue
      if (this.isLost(recordName, this.reservedAt(taken), knownAt)) continue
      this.broken.push(
        `signal: run ${run.number} does not learn that run ${taken.number} has its key`,
      )
    }
  }

  /** When the receiver woke up again, each time. */
  #wakings(receiver: string, before: number): readonly number[] {
    return this.history.disturbances
      .filter(
        ({ what, who, from }) => what === 'freeze receiver' && who === receiver && from < before,
      )
      .map(({ from, ms }) => from + ms)
  }

  /** The run that has reserved the key after another. */
  #whoTook(run: Run, until: number): Run | undefined {
    const from = this.reservedAt(run)
    return this.runsOf(run.recordName).find(
      (each) => each !== run && this.reservedAt(each) > from && each.startedAt < until,
    )
  }

  #mayLoseLease(run: Run, at: number): boolean {
    const { recordName, receiver, attempt } = run
    const from = this.reservedAt(run)
    const { leaseSeconds, maxRunSeconds } = this.story
    // A run that does not reach its store has its lease until that ends. It counts from its request, and its receiver may
    // have frozen between the request and the reply.
    const hasFrozen = this.#wakings(receiver, from).some((wokeAt) => wokeAt > attempt.sentAt)
    const requestedAt = hasFrozen ? attempt.sentAt : from - RESERVED_WITHIN_MS
    const hasEnded = at - requestedAt > leaseSeconds * 1000 * (1 - DRIFT)
    return (
      at - from > maxRunSeconds * 1000 * (1 - DRIFT) ||
      (hasEnded && this.isDisturbed(receiver, requestedAt, at)) ||
      // Where its record was lost, an undone reservation may have left a tombstone: that of another attempt, or its own
      // one that was lost in transit and repeated.
      (this.isLost(recordName, from, at) &&
        (this.isDisturbed(receiver, attempt.sentAt, from) ||
          this.attemptsOf(recordName).some((each) => each !== attempt && each.sentAt <= at))) ||
      // A run begins a little after it has reserved its key.
      this.runsOf(recordName).some(
        (each) => this.reservedAt(each) > from && this.reservedAt(each) <= at,
      ) ||
      this.#settlementsOf(recordName).some(({ sentAt }) => sentAt <= at)
    )
  }

  /** Who asks again after an answer gets the same; after the first byte of a stream, that it is not stored. */
  #repeatedAnswers(): void {
    for (const first of this.history.attempts) {
      const streamed = this.history.runs.find(
        ({ attempt, ending = '' }) => attempt === first && STREAMED.has(ending),
      )
      const run = streamed ?? this.#runAnsweredTo(first)
      const knownAt = streamed === undefined ? first.gotAt : first.firstByteAt
      if (run === undefined || knownAt === undefined) continue
      const isKnown = first.answer?.headers['idempotent-replayed'] === 'true'
      if (!isKnown && (!this.#wasStored(run, knownAt) || this.#whoTookOver(run) !== undefined))
        continue
      for (const again of this.attemptsOf(run.recordName)) {
        if (again.sentAt < knownAt || again.answer === undefined) continue
        if (
          again.call.body !== run.body ||
          again.answer.status === 503 ||
          (again.answer.status < 404 && again.answer.status > 400)
        )
          continue
        if (this.#isExcused(run, again)) continue
        if (!this.#isSame(run, again.answer)) {
          const got = problemOf(again.answer) ?? again.answer.body
          this.broken.push(
            `again: ${run.recordName} was answered by run ${run.number}, then by ${got} (attempt ${again.number})`,
          )
        }
      }
    }
  }

  #runAnsweredTo({ answer }: Attempt): Run | undefined {
    if (answer === undefined || problemOf(answer) !== undefined) return undefined
    const run = this.runWith(answer)
    return run?.ending === 'releases the key' ? undefined : run
  }

  /** Whether nothing kept the run from its store when it ended. That its process dies is no excuse. */
  #wasStored(run: Run, knownAt: number): boolean {
    const isStored = run.reported === 'result_kept' || run.reported === 'result_too_large'
    if (isStored && (run.reportedAt ?? Infinity) <= knownAt) return true
    if (run.reported === 'key_lost' && this.#whoTook(run, run.endedAt ?? 0) !== undefined)
      return false
    return !this.isDisturbed(
      run.receiver,
      run.startedAt,
      knownAt,
      (what) => !HARMLESS_TO_STORED.has(what),
    )
  }

  #isExcused(run: Run, again: Attempt): boolean {
    const { recordName, startedAt } = run
    const until = again.gotAt ?? 0
    const isSettled = this.#settlementsOf(recordName).some(
      ({ isDone, sentAt }) => isDone !== false && sentAt <= until,
    )
    // Replicas confirm reservations, not results.
    return isSettled || this.isLost(recordName, startedAt - RESERVED_WITHIN_MS, until, 'results')
  }

  #isSame(run: Run, answer: Answer): boolean {
    if (!STORED.has(run.ending ?? '')) return problemOf(answer) === 'result-not-stored'
    return isOf(run, answer)
  }

  /** Whether the server may have lost the token after this attempt. */
  #isTokenLost({ sentAt }: Attempt): boolean {
    const isLost = this.history.losses.some(
      ({ what, at, keys }) =>
        (what !== 'failover' || !this.story.waitsForReplicas) &&
        at >= sentAt &&
        [...keys].some((key) => key.includes('t:')),
    )
    if (isLost) this.explained.push('lost token')
    return isLost
  }

  #mayDeny({ token, gotAt = 0 }: Attempt): boolean {
    const denials = this.history.denials.filter(
      ({ service, sentAt }) => service === token.service && sentAt <= gotAt,
    )
    return denials.some(({ what }) => what === 'deny')
  }

  /** Within a second, nobody accepts a denied caller, and nobody refuses one that is allowed. */
  #denials(): void {
    for (const denial of this.history.denials) {
      const { service, what, confirmedAt = Infinity } = denial
      // Of a deny and an allow that overlap, either may be the last.
      const isReplaced = this.history.denials.some(
        (each) =>
          each.service === service &&
          each.what !== what &&
          (each.confirmedAt ?? Infinity) >= denial.sentAt,
      )
      if (isReplaced) continue
      for (const attempt of this.history.attempts) {
        if (attempt.token.service !== service || !this.#isBound(denial, attempt)) continue
        const lateMs = Math.round((attempt.admittedAt ?? attempt.gotAt ?? 0) - confirmedAt)
        if (what === 'deny' && attempt.isAdmitted) {
          this.broken.push(`denied: ${service} passed ${lateMs} ms after it was denied`)
        }
        if (what === 'allow' && attempt.answer?.status === 403) {
          this.broken.push(`allowed: ${service} was refused ${lateMs} ms after it was allowed`)
        }
      }
    }
  }

  /** Whether the receiver of an attempt must know of a change of the denylist. */
  #isBound({ what, confirmedAt = Infinity }: Denial, attempt: Attempt): boolean {
    const { receiver = '', bootedAt = 0, admittedAt, gotAt = 0 } = attempt
    const decidedAt = admittedAt ?? gotAt
    const isLost = (from: number, until: number): boolean =>
      this.history.losses.some(
        ({ at, keys }) =>
          at >= from && at <= until && [...keys].some((key) => key.includes('denylist')),
      )
    const hadIt =
      bootedAt < confirmedAt &&
      decidedAt >= confirmedAt + DENIED_WITHIN_MS &&
      !this.isDisturbed(
        receiver,
        confirmedAt - DENIED_WITHIN_MS,
        confirmedAt + DENIED_WITHIN_MS,
        (each) => isNoBoot(each) && each !== 'stall replicas',
      )
    // What it has read once it keeps, whatever the server loses. What it has not read it does not know, and accepts nobody.
    if (what === 'deny' && hadIt)
      return !isLost(confirmedAt - DENIED_WITHIN_MS, confirmedAt + DENIED_WITHIN_MS)
    if (isLost(0, decidedAt) || decidedAt < confirmedAt) return false
    if (what === 'deny' && bootedAt > confirmedAt) return true
    return (
      decidedAt >= confirmedAt + DENIED_WITHIN_MS &&
      !this.isDisturbed(receiver, confirmedAt - DENIED_WITHIN_MS, decidedAt, isNoBoot)
    )
  }

  #settlementsOf(recordName: string): readonly SettlementRecord[] {
    return this.history.settlements.filter((each) => each.recordName === recordName)
  }

  /** The step that gave a record its fence. */
  #firstStep(recordName: string, fence: number): RecordStep | undefined {
    return this.history.steps.find(
      (step) => step.recordName === recordName && step.after?.fence === fence,
    )
  }
}

const STREAMED = new Set(['answers too much', 'streams'])
const STORED = new Set(['answers', 'answers in parts', 'fails'])
/** What a receiver publishes when the store has confirmed the end of a run. */
const ENDED_WELL = new Set(['result_kept', 'result_too_large', 'released', 'abandoned'])
/** What ends a process, or takes data, so that nobody can take a reservation back. */
const FATAL = new Set([
  'kill receiver',
  'stop receiver',
  'freeze receiver',
  'fail over',
  'restart Redis without its last writes',
])
/** What keeps a living receiver from its store for longer than a lease. */
const CUT_OFF = new Set([
  'freeze Redis',
  'separate receiver from Redis',
  'silence link to Redis',
  'restart Redis',
  'fill Redis',
  'weather',
])
/** What leaves the links of a living receiver to its store alone. */
const SPARES_LINKS = new Set([
  'kill receiver',
  'freeze receiver',
  'stall replicas',
  'boot',
  'stop issuer',
  'jump Redis clock',
])
const HARMLESS_TO_STORED = new Set(['kill receiver', 'stall replicas', 'boot'])

/** A process that starts refuses everybody until it has read the denylist. */
const isNoBoot = (what: string): boolean => what !== 'boot'
