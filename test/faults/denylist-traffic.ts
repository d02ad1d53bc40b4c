import { Agent, get } from 'node:http'
import { until } from '../support/until.js'

export type Outcome = 'accepted' | 'refused' | 'unknown' | 'other'

interface Asked {
  readonly port: number
}

interface Answer {
  readonly receiver: Asked
  readonly token: string
  readonly outcome: Outcome
  /** Of `performance.now`, when it had come. */
  readonly at: number
}

/** What is asked about the answers of some receivers to one token. */
export interface Question {
  readonly token: string
  readonly receivers: readonly Asked[]
  /** Of `performance.now`. */
  readonly since: number
}

/** About 100 requests a second to each receiver, with each of the tokens in turn. */
export interface Traffic {
  /** Whether there was an answer of this kind. */
  has(outcome: Outcome, question: Question): boolean
  /** Milliseconds from `since` to the last acceptance by any of them; 0 when there was none. */
  lastAcceptance(question: Question): number
  /** Milliseconds from `since` to the first acceptance by the last of them that accepts. */
  firstAcceptance(question: Question): number
  /** Resolves when the latest answers of all of them are so. */
  settled(outcome: Outcome, question: Omit<Question, 'since'>): Promise<void>
  stop(): Promise<void>
}

const INTERVAL_MS = 10
const SETTLED_ANSWERS = 5

export function startTraffic(receivers: readonly Asked[], tokens: readonly string[]): Traffic {
  const agent = new Agent({ keepAlive: true })
  const answers: Answer[] = []
  const open = new Set<Promise<void>>()
  let sent = 0

  function send(receiver: Asked, token: string): void {
    const answered = ask(agent, { port: receiver.port, token, path: '/orders' }).then((status) => {
      answers.push({ receiver, token, outcome: outcomeOf(status), at: performance.now() })
      open.delete(answered)
    })
    open.add(answered)
  }
  const timer = setInterval(() => {
    const token = tokens[sent++ % tokens.length] as string
    for (const receiver of receivers) send(receiver, token)
  }, INTERVAL_MS)

  const answersTo = ({ token, receivers: asked }: Omit<Question, 'since'>): Answer[] =>
    answers.filter((answer) => answer.token === token && asked.includes(answer.receiver))
  const timesOf = (outcome: Outcome, question: Question): number[] =>
    answersTo(question)
      .filter((answer) => answer.outcome === outcome && answer.at >= question.since)
      .map(({ at }) => at - question.since)

  return {
    has: (outcome, question) => timesOf(outcome, question).length > 0,
    lastAcceptance: (question) => Math.max(0, ...timesOf('accepted', question)),
    firstAcceptance: (question) =>
      Math.max(
        ...question.receivers.map((receiver) =>
          Math.min(...timesOf('accepted', { ...question, receivers: [receiver] })),
        ),
      ),
    settled: (outcome, question) =>
      until(`all answer "${outcome}"`, async () =>
        question.receivers.every((receiver) => {
          const latest = answersTo({ ...question, receivers: [receiver] }).slice(-SETTLED_ANSWERS)
          const isWhole = latest.length === SETTLED_ANSWERS
          return isWhole && latest.every((answer) => answer.outcome === outcome)
        }),
      ),
    async stop() {
      clearInterval(timer)
      await Promise.all(open)
      agent.destroy()
    },
  }
}

/** The status of the answer; 0 when none came. */
export function ask(
  agent: Agent | undefined,
  { port, token, path }: { port: number; token: string; path: string },
): Promise<number> {
  const headers = { authorization: `Bearer ${token}` }
  return new Promise((resolve) => {
    get({ host: '127.0.0.1', port, path, agent, headers }, (response) => {
      response.resume().on('close', () => resolve(response.statusCode ?? 0))
    }).on('error', () => resolve(0))
  })
}

function outcomeOf(status: number): Outcome {
  if (status === 200) return 'accepted'
  if (status === 503) return 'unknown'
  return status === 401 || status === 403 ? 'refused' : 'other'
}
