import { type Answer, type Attempt, problemOf, type Run } from '../history.js'
import { DRIFT, isOf, Oracle, unless } from '../oracle.js'
import type { CoupledRoute } from '../story.js'
import type { DatabaseStep, Row } from './database.js'

/** Endings whose answer is stored. */
const STORED = new Set([
  'answers',
  'answers in parts',
  'writes late',
  'refuses',
  'refuses and keeps its writes',
])
const NOT_STORED = new Set(['answers too much', 'streams'])
/** What a receiver publishes when a record is kept. */
const KEPT = new Set(['result_kept', 'result_too_large', 'refusal_kept'])

const isCommitted = (ending = ''): boolean =>
  ending !== 'refuses' && (STORED.has(ending) || NOT_STORED.has(ending))

/**
 * What a coupled store promises: the record of a key, the handler's writes and its answer are there together, or not
 * at all.
 */
export class CoupledOracle extends Oracle {
  protected override ofStore(): void {
    this.#steps()
    this.#endings()
    this.answers()
    this.#repeatedAnswers()
    const isReplay = ({ answer }: Attempt): boolean =>
      answer?.headers['idempotent-replayed'] === 'true'
    this.tokens(
      (attempt) =>
        attempt.isConsumed === true ||
        (this.#spendsTokenWithin && (isReplay(attempt) || this.#hasRecord(attempt))),
      () => false,
    )
  }

  /** Whether a token is used up with the record of its run. */
  get #spendsTokenWithin(): boolean {
    return this.story.isSingleUse && this.#route.isTokenSpentWithin
  }

  #hasRecord(attempt: Attempt): boolean {
    const run = this.history.runs.find((each) => each.attempt === attempt)
    return run?.effectAt !== undefined || run?.reported === 'refusal_kept'
  }

  get #route(): CoupledRoute {
    return this.story.coupled as CoupledRoute
  }

  protected override whyAgain(earlier: Run, later: Run): string | undefined {
    return this.#isSwept(earlier, later.effectAt ?? 0) ? 'end of the retention' : undefined
  }

  /** Whether the record of a run was deleted by then. */
  #isSwept(run: Run, until: number): boolean {
    const id = this.#recordOf(run)
    return this.history.databaseSteps.some(
      (step) => step.type === 'delete' && step.row.id === id && step.at <= until,
    )
  }

  #begunBy(run: Run | undefined) {
    return this.history.databaseSteps.find(
      (step) => step.type === 'begin' && step.transaction === run?.fence,
    ) as (DatabaseStep & { type: 'begin' }) | undefined
  }

  /** The id of the record of a run. */
  #recordOf(run: Run): string | undefined {
    return this.#begunBy(run)?.id
  }

  #runIn(transaction: number): Run | undefined {
    return this.history.runs.find(({ fence }) => fence === transaction)
  }

  /** What the server has done, one step after the other. */
  #steps(): void {
    const records = new Map<string, Row>()
    const running = new Map<string, Run>()
    for (const step of this.history.databaseSteps) {
      if (step.type === 'commit') this.#committed(step, records)
      if (step.type === 'delete') {
        const { row, now } = step
        records.delete(row.id)
        if ((row.expiresAt ?? 0) > now)
          this.broken.push(`record: ${row.table} ${row.id} is swept before its end`)
      }
      const run = 'transaction' in step ? this.#runIn(step.transaction) : undefined
      if (run === undefined) continue
      if (step.type === 'end') {
        for (const [id, each] of running) if (each === run) running.delete(id)
      }
      if (step.type !== 'begin') continue
      if (records.has(step.id) && !step.hasOldSnapshot)
        this.broken.push(`alone: run ${run.number} begins although its key has a record`)
      const other = running.get(step.id)
      if (other !== undefined)
        this.broken.push(`alone: run ${run.number} begins beside run ${other.number}`)
      running.set(step.id, run)
    }
  }

  #committed(
    { transaction, rows }: DatabaseStep & { type: 'commit' },
    records: Map<string, Row>,
  ): void {
    const run = this.#runIn(transaction)
    const parts = rows.filter(({ table }) => table === 'effect')
    const recorded = rows.filter(({ table }) => table === 'idempotency')
    for (const row of recorded) {
      if (records.has(row.id)) this.broken.push(`record: ${row.id} is written twice`)
      records.set(row.id, row)
      const lastsMs = (row.expiresAt ?? 0) - row.insertedAt
      if (lastsMs < this.#route.retentionSeconds * 1000)
        this.broken.push(`record: ${row.id} lasts for only ${lastsMs} ms`)
    }
    const hasToken = rows.some(({ table }) => table === 'used_token')
    if (this.#spendsTokenWithin && recorded.length > 0 && !hasToken)
      this.broken.push(`token: ${recorded[0]?.id} is recorded without its token`)
    const late = parts.find(
      ({ id }) => id !== `${run?.number} first` && id !== `${run?.number} second`,
    )
    if (late !== undefined) this.broken.push(`late: ${late.id} is written after the answer`)
    if (run === undefined || late !== undefined) return
    const isRecorded = recorded.some(({ id }) => id === this.#recordOf(run))
    if (parts.length > 0 && !isRecorded)
      this.broken.push(`record: run ${run.number} writes without its record`)
    if (isRecorded && parts.length !== 2)
      this.broken.push(`record: run ${run.number} is recorded without its writes`)
  }

  /** A run that has failed, or has refused, leaves nothing. */
  #endings(): void {
    for (const { number, effectAt, ending } of this.history.runs) {
      if (effectAt !== undefined && !isCommitted(ending))
        this.broken.push(`refused: run ${number}, which ${ending}, has written`)
    }
  }

  protected override faultOf(
    attempt: Attempt,
    answer: Answer,
    own: Run | undefined,
  ): string | undefined {
    const { recordName } = attempt.call
    const isHidden = own?.effectAt !== undefined && !isOf(own, answer)
    if (isHidden && own.reported !== 'commit_unknown')
      return `refused: run ${own.number} has written, and its caller got ${answer.status}`
    if (answer.status === 401) return this.faultOf401(attempt)
    switch (problemOf(answer)) {
      case 'about:blank':
        return unless(
          answer.status === 503 && (this.hasNoFetchLeft(attempt) || this.#mayFail(attempt, own)),
          `own fault: ${answer.status} of ${attempt.receiver}`,
        )
      case 'idempotency-key-reused':
        return this.faultOf422(attempt)
      case 'request-in-progress':
        return unless(
          this.others(attempt).length > 0,
          'key: in progress, but nobody else has asked',
        )
      case 'result-not-stored':
        return unless(
          this.runsOf(recordName).some(
            ({ effectAt, ending = '' }) => effectAt !== undefined && NOT_STORED.has(ending),
          ),
          'key: result not stored, but every result can be stored',
        )
      default:
        return this.#faultOfResult(attempt, answer, own)
    }
  }

  #mayFail(attempt: Attempt, own: Run | undefined): boolean {
    const { receiver = '', sentAt, gotAt = 0, token } = attempt
    const { connections, transactionMs } = this.#route
    // Another request has the token, and has not ended.
    const isInUse = this.history.attempts.some(
      (each) =>
        each !== attempt && each.token.id === token.id && (each.receivedAt ?? Infinity) <= gotAt,
    )
    if (this.#spendsTokenWithin && isInUse) return true
    const begun = this.#begunBy(own)
    const isLong = begun !== undefined && gotAt - begun.at >= transactionMs * (1 - DRIFT)
    // Who has two connections may wait for one, and so may who asks what a COMMIT did.
    return isLong || connections === 2 || this.isDisturbed(receiver, sentAt, gotAt)
  }

  #faultOfResult(attempt: Attempt, answer: Answer, own: Run | undefined): string | undefined {
    const { gotAt = 0 } = attempt
    const run = this.runWith(answer)
    const isReplayed = answer.headers['idempotent-replayed'] === 'true'
    if (run === undefined) {
      const isRefused = answer.status === 500 && own?.ending === 'swallows an error'
      return isRefused ? undefined : `answer: ${answer.status} "${answer.body}" is of no run`
    }
    const fault = this.faultOfRun(run, attempt, answer)
    if (fault !== undefined) return fault
    // A refusal is sent although another run was first.
    const needsWrites =
      answer.status < 400 || (isCommitted(run.ending) && !this.#isOvertaken(run, gotAt))
    if (needsWrites && (run.effectAt ?? Infinity) > gotAt)
      return `answer: that of run ${run.number}, which had not committed`
    if (isReplayed === (run === own)) return `answer: that of run ${run.number}, replayed or not`
    if (run.ending === 'passes on an error')
      return `refused: the server failed run ${run.number}, and its caller got ${answer.status}`
    const isStored = !isReplayed || STORED.has(run.ending ?? '')
    return isStored ? undefined : `answer: run ${run.number}, which ${run.ending}, was replayed`
  }

  #isOvertaken(run: Run, until: number): boolean {
    const id = this.#recordOf(run)
    return this.history.databaseSteps.some(
      (step) =>
        step.type === 'commit' &&
        step.transaction !== run.fence &&
        step.at <= until &&
        step.rows.some((row) => row.table === 'idempotency' && row.id === id),
    )
  }

  /** Who asks again gets the same, until the record is swept. */
  #repeatedAnswers(): void {
    for (const { answer, gotAt = 0, call } of this.history.attempts) {
      const run = answer && this.runWith(answer)
      if (run === undefined || !KEPT.has(run.reported ?? '') || gotAt < (run.reportedAt ?? 0))
        continue
      for (const again of this.history.attempts) {
        if (again.call.recordName !== call.recordName || again.call.body !== call.body) continue
        if (again.sentAt < gotAt || again.answer === undefined) continue
        const type = problemOf(again.answer)
        const isExpected = NOT_STORED.has(run.ending ?? '')
          ? type === 'result-not-stored'
          : isOf(run, again.answer)
        if (
          this.#isSwept(run, again.gotAt ?? 0) ||
          isExpected ||
          type === 'about:blank' ||
          again.answer.status === 401
        )
          continue
        // Who has the lock for a moment, to look, keeps others from it.
        if (type === 'request-in-progress') continue
        this.broken.push(
          `again: ${call.recordName} was answered by run ${run.number}, then by ${type ?? again.answer.body} (attempt ${again.number})`,
        )
      }
    }
  }
}
