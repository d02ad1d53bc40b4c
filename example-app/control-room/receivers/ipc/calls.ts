import { ServiceAuthError } from 'express-service-auth'
import { type CarriedError, carried, uncarried } from './carried-error.js'

/** What passes between two processes for a call; `serialization: 'advanced'` keeps bytes as bytes. */
export type CallMessage =
  | { readonly type: 'call'; readonly id: number; readonly name: string; readonly args: unknown[] }
  | { readonly type: 'answer'; readonly id: number; readonly value: unknown }
  | { readonly type: 'rejection'; readonly id: number; readonly error: CarriedError }

/** What the other side may call. */
export type Handlers = Readonly<Record<string, (...args: never[]) => unknown>>

export interface CallOptions {
  /** Called with an answer that comes after the caller has been rejected. */
  readonly onLateAnswer?: (value: unknown) => void
}

/** Questions and answers with another process. Both sides hold one of these. */
export interface Calls {
  /**
   * Rejects with what the other side has rejected with, or with a `ServiceAuthError` (`unavailable`)
   * when no answer comes in time, or none can come any more.
   */
  ask<T>(name: string, args: unknown[], options?: CallOptions): Promise<T>
  receive(message: CallMessage): void
  /** Nobody answers any more. */
  end(): void
}

/** Milliseconds. What takes longer than this is not known to have happened. */
const ANSWER_WITHIN_MS = 2000
/** Late answers are remembered for so many questions at most. */
const LATE_QUESTIONS = 1000

export class Unanswered extends ServiceAuthError {
  readonly fault: 'timeout' | 'closed'

  constructor(fault: 'timeout' | 'closed') {
    const what = fault === 'timeout' ? 'has not answered in time' : 'is gone'
    super('unavailable', `the other process ${what}`)
    this.fault = fault
  }
}

interface Question {
  readonly resolve: (value: never) => void
  readonly reject: (error: Error) => void
  readonly timer: NodeJS.Timeout
}

export function createCalls(send: (message: CallMessage) => void, handlers: Handlers): Calls {
  const questions = new Map<number, Question>()
  const late = new Map<number, (value: unknown) => void>()
  let lastId = 0
  let isOver = false

  function takeQuestion(id: number): Question | undefined {
    const question = questions.get(id)
    questions.delete(id)
    clearTimeout(question?.timer)
    return question
  }

  function giveUp(id: number, { onLateAnswer }: CallOptions): void {
    takeQuestion(id)?.reject(new Unanswered('timeout'))
    if (onLateAnswer === undefined) return
    late.set(id, onLateAnswer)
    for (const [oldest] of late) if (late.size > LATE_QUESTIONS) late.delete(oldest)
  }

  async function answer({ id, name, args }: Extract<CallMessage, { type: 'call' }>): Promise<void> {
    try {
      const handler = Object.hasOwn(handlers, name) ? handlers[name] : undefined
      if (handler === undefined) throw new TypeError(`there is no ${name}`)
      send({ type: 'answer', id, value: await handler(...(args as never[])) })
    } catch (error) {
      send({ type: 'rejection', id, error: carried(error) })
    }
  }

  return {
    ask: (name, args, options = {}) =>
      new Promise((resolve, reject) => {
        if (isOver) {
          reject(new Unanswered('closed'))
          return
        }
        lastId += 1
        const id = lastId
        const timer = setTimeout(() => giveUp(id, options), ANSWER_WITHIN_MS)
        questions.set(id, { resolve, reject, timer })
        send({ type: 'call', id, name, args })
      }),
    receive(message) {
      if (message.type === 'call') {
        void answer(message)
        return
      }
      const question = takeQuestion(message.id)
      if (message.type === 'rejection') question?.reject(uncarried(message.error))
      else if (question) question.resolve(message.value as never)
      else late.get(message.id)?.(message.value)
      late.delete(message.id)
    },
    end() {
      isOver = true
      for (const id of [...questions.keys()]) takeQuestion(id)?.reject(new Unanswered('closed'))
      late.clear()
    },
  }
}
