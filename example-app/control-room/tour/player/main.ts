import { createOperator } from '../../../story/operator.js'
import { setStage } from '../../../story/stage.js'
import { type Answer, play, type Step } from '../../../story/step.js'
import { storySteps } from '../../../story/steps.js'
import { endWithParent } from '../../end-with-parent.js'
import type { FromPlayer, ToPlayer } from '../messages.js'
import { SCRIPT } from '../script.js'
import type { Played } from '../tour-state.js'

/*
 * The tour has a process of its own: who watches the package's channels in a process sees all that
 * happens there, and the backend SDK knows one core for each.
 */

/** A core of nobody else, on loopback, for as long as the tour lives. */
const API_KEY = 'the-key-of-the-tour'
/** Receivers take 32 keys. */
const MAX_DYNAMIC_KEYS = 16

endWithParent()

const operator = createOperator()
const stage = await setStage({
  ports: { identityCore: 0, issuer: 0, orders: 0, billing: 0 },
  apiKey: API_KEY,
  // In memory: nothing that others could disturb, or be disturbed by.
  addresses: { databaseUrl: undefined, redisUrl: undefined },
  operator,
})
const steps = storySteps(stage)
const answers = new Map<string, Answer>()

process.on('message', ({ title }: ToPlayer) => {
  void playTitled(title).then((played) => send({ type: 'played', played }))
})
send({ type: 'ready' })

async function playTitled(title: string): Promise<Played> {
  const step = steps.find((each) => each.title === title)
  if (step === undefined) return { seen: 'nothing', faults: ['the story has no such step'] }
  await prepare(step)
  const { status, seen, faults } = await play(step, { stage, operator, answers })
  const answer = status === undefined ? undefined : answers.get(title)
  return {
    seen,
    faults,
    ...(status !== undefined && { status }),
    ...(answer && { answer: textOf(answer) }),
  }
}

/** Steps are played alone and again, so what one of them has left must not change the next. */
async function prepare({ title }: Step): Promise<void> {
  const scripted = SCRIPT.find((step) => step.title === title)
  stage.core.setDown(scripted?.isCoreDown ?? false)
  const dynamic = stage.core.keys().filter(({ kind }) => kind === 'dynamic')
  for (const { kid } of dynamic.slice(MAX_DYNAMIC_KEYS)) await stage.core.withdraw(kid)
}

function textOf({ status, headers, text }: Answer): string {
  const lines = [...headers].map(([name, value]) => `${name}: ${value}`)
  return [`HTTP/1.1 ${status}`, ...lines, '', text].join('\n')
}

function send(message: FromPlayer): void {
  // A message that cannot be sent is lost, because this process is about to end.
  process.send?.(message, () => undefined)
}
