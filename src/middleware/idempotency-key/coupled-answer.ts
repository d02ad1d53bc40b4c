import { ServiceAuthError } from '../../base/decision/service-auth-error.js'
import type { BufferedAnswer } from '../../idempotency/coupled/buffered-answer.js'
import type { CoupledFinding, CoupledOutcome } from '../../idempotency/coupled/coupled-store.js'
import { refuse } from '../refusal-table.js'
import type { Emit, IdempotentExchange } from './idempotent-exchange.js'

/** A run that has ended. */
interface EndedRun {
  readonly fence: number
  /** The handler's answer. */
  readonly answer: BufferedAnswer
  readonly outcome: CoupledOutcome
  /** Answers from the record of another run of the key. */
  answerOvertaken(found: CoupledFinding): void
}

/** Sends the handler's answer, or a refusal or an error instead. */
export function answerRun(exchange: IdempotentExchange, ended: EndedRun): void {
  const { response, next } = exchange
  const emit = ignoringErrors(exchange.emit)
  const { answer, fence, outcome } = ended
  const status = answer.status === undefined ? {} : { status: answer.status }
  const accepted = { outcome: 'accepted', fence, ...status } as const
  switch (outcome.outcome) {
    case 'committed':
      answer.send()
      if (answer.context !== undefined) {
        emit({ ...accepted, reason: answer.isStorable ? 'result_kept' : 'result_too_large' })
      }
      if (!outcome.usedTransaction && (answer.status ?? 0) < 400) {
        emit({ ...accepted, reason: 'transaction_unused' })
      }
      return
    case 'refusal_kept':
      answer.send()
      emit({ ...accepted, reason: 'refusal_kept' })
      return
    case 'refusal_lost':
      answer.send()
      emit({ ...accepted, reason: outcome.to === 'overtaken' ? 'conflict' : 'result_lost' })
      return
    case 'rolled_back':
      answer.send()
      emit({ ...accepted, reason: answer.isReleased ? 'released' : 'rolled_back' })
      return
    case 'uncoupled':
      answer.send()
      emit({ ...accepted, reason: 'uncoupled' })
      return
    case 'overtaken':
      emit({ outcome: 'accepted', reason: 'conflict', fence })
      if (answer.discard()) ended.answerOvertaken(outcome.by)
      return
    case 'undone': {
      const { reason, sqlState } = outcome
      emit({ outcome: 'undecided', reason, status: 503, ...(sqlState && { sqlState }), fence })
      if (answer.discard()) {
        refuse(response, 'store_unavailable', outcome.mayRetryNow ? 0 : undefined)
      }
      return
    }
    case 'commit_refused': {
      const { cause, sqlState } = outcome
      emit({ outcome: 'undecided', reason: 'commit_refused', ...(sqlState && { sqlState }), fence })
      const message = 'the database has refused to commit what the handler had written'
      if (answer.discard()) next(new ServiceAuthError('commit_refused', message, { cause }))
      return
    }
    default:
      throw new TypeError(`store.run resolved to ${outcome.outcome} although it called \`work\``)
  }
}

/** Building an event reads the app's request, which may throw. By now the outcome is fixed, so the error is ignored. */
export function ignoringErrors(emit: Emit): Emit {
  return (event) => {
    try {
      emit(event)
    } catch {
      // The answer is sent anyway.
    }
  }
}
