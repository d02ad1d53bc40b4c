import type { Machine } from './clock.js'
import type { Answer, Attempt, CallRecord } from './history.js'
import { simulatedFetch } from './http.js'
import { ISSUER, type Token } from './issuer.js'
import type { Operator } from './operator.js'
import { OPERATION, type Receiver } from './receiver.js'
import { ATTEMPT, type Stage } from './stage.js'
import type { Call } from './story.js'

/** The processes that call the receivers, by the rules of `serviceFetch`. */
export class Callers {
  /** How many calls have not ended. */
  open = 0
  readonly #stage: Stage
  readonly #receivers: readonly Receiver[]
  readonly #operator: Operator
  readonly #machines = new Map<string, Machine>()
  readonly #tokens: Token[] = []

  constructor(stage: Stage, receivers: readonly Receiver[], operator: Operator) {
    this.#stage = stage
    this.#receivers = receivers
    this.#operator = operator
  }

  #machine(name: string): Machine {
    const known = this.#machines.get(name)
    if (known !== undefined) return known
    const machine = this.#stage.simulation.machine(name)
    this.#machines.set(name, machine)
    return machine
  }

  /** `to` is the receiver of all its attempts. */
  call(call: Call, isLast = false, to?: Receiver): void {
    const machine = this.#machine(`caller ${call.caller + 1}`)
    this.open += 1
    this.#stage.simulation.after(0, machine, () => void this.#send(call, { machine, isLast, to }))
  }

  async #send(
    call: Call,
    { machine, isLast, to }: { machine: Machine; isLast: boolean; to: Receiver | undefined },
  ): Promise<void> {
    const { name } = machine
    const { history, simulation, network, issuer, storedAs, package: esa } = this.#stage
    const { key, body, service, deadlineMs, attemptTimeoutMs, maxAttempts } = call
    const record: CallRecord = {
      ...call,
      number: history.calls.length + 1,
      name,
      recordName: `${service}/${key}`,
      isLast,
      startedAt: simulation.now,
    }
    history.calls.push(record)
    const scope = { issuer: ISSUER, audience: 'orders', caller: service, operation: OPERATION }
    storedAs.set(record.recordName, esa.recordKey(scope, key))
    let token: Token | undefined
    let isRefused = false
    const source = {
      token: async ({ after }: { readonly after?: string } = {}) => {
        isRefused ||= after !== undefined
        const old =
          call.reusesToken && !isRefused
            ? this.#tokens.find((each) => each.service === service)
            : undefined
        token = old ?? issuer.token(service)
        this.#tokens.push(token)
        return token.text
      },
    }
    const fetch: typeof globalThis.fetch = async (input, init) => {
      const attempt: Attempt = {
        call: record,
        number: history.attempts.length,
        token: token as Token,
        sentAt: simulation.now,
      }
      history.attempts.push(attempt)
      const receiver = to ?? simulation.random.pick(this.#receivers)
      const headers = new Headers(init?.headers)
      headers.set(ATTEMPT, String(attempt.number))
      this.#stage.note(name, `sends ${record.recordName} ${body} to ${receiver.name}`)
      const observer = {
        onFirstByte: () => {
          attempt.firstByteAt = simulation.now
        },
        onAnswer: (answer: Answer) => {
          attempt.answer = answer
          attempt.gotAt = simulation.now
          this.#stage.note(name, `gets ${answer.status} ${answer.body}`)
        },
      }
      return simulatedFetch(machine, network, receiver, observer)(input, { ...init, headers })
    }
    const send = esa.serviceFetch(source, {
      origins: ['https://orders.example.com'],
      deadlineMs,
      attemptTimeoutMs,
      maxAttempts,
      fetch,
    })
    const headers = { 'idempotency-key': key, 'content-type': 'application/json' }
    const request = { method: 'POST', headers, body: JSON.stringify({ item: body }) }
    try {
      const response = await send('https://orders.example.com/orders', request)
      record.answer = {
        status: response.status,
        body: await response.text(),
        headers: Object.fromEntries(response.headers),
      }
    } catch (error) {
      this.#stage.note(name, `gives up: ${(error as Error).message}`)
    }
    record.endedAt = simulation.now
    if (call.asksAgain) this.call({ ...call, asksAgain: false }, isLast, to)
    const isUnknown = record.answer?.body.includes('outcome-unknown')
    if (isUnknown && call.settles !== undefined)
      this.#operator.settle(record.recordName, call.settles)
    this.open -= 1
  }
}
