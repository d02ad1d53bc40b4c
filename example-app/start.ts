import { type Logger, logDecisions } from 'express-service-auth'
import { atPort, StartError } from './environment.js'
import { launch } from './launch.js'
import { jsonLines } from './orders/json-lines.js'
import { openRoom } from './room/room.js'
import { serveRoom } from './room/serve.js'
import { startWatch } from './room/watch.js'
import { createOperator } from './story/operator.js'
import { setStage } from './story/stage.js'
import { type Answer, play } from './story/step.js'
import { storySteps } from './story/steps.js'
import { createTable, heading, line } from './story/terminal.js'

const FLAGS = ['--once', '--no-page']

/** The lines that tell why somebody was turned away, and what is at fault; not that all is well. */
const refusals: Logger = { ...jsonLines, info: () => undefined }

await launch('start', async () => {
  const words = process.argv.slice(2)
  const unknown = words.find((word) => !FLAGS.includes(word))
  if (unknown !== undefined) {
    throw new StartError(`unknown option ${unknown}; there are ${FLAGS.join(' and ')}`)
  }
  const operator = createOperator()
  const watch = startWatch()
  const { onDecision } = operator
  const stage = await setStage({ onDecision, around: watch.around })
  heading('express-service-auth: a story of three services')
  line(
    `core     ${stage.core.url}   mints tokens and publishes keys; its API key is ${stage.core.apiKey}`,
  )
  line(`orders   ${stage.ordersUrl}   the receiver, store: ${stage.storeName}`)
  line(`billing  ${stage.billingUrl}   the caller`)
  line()

  const steps = storySteps(stage)
  const table = createTable(steps)
  const answers = new Map<string, Answer>()
  let asExpected = 0
  table.header()
  for (const step of steps) {
    const outcome = await play(step, { stage, operator, answers })
    table.row(step, outcome)
    if (outcome.faults.length === 0) asExpected += 1
  }
  line()
  heading(`${asExpected} of ${steps.length} steps went as expected`)
  if (words.includes('--once')) {
    await stage.close()
    process.exitCode = asExpected === steps.length ? 0 : 1
    return undefined
  }
  line()
  const room = words.includes('--no-page') ? undefined : await openRoom(stage, watch)
  const page = room && (await atPort('ROOM_PORT', (port) => serveRoom(room, port)))
  heading('The services stay up; Ctrl-C ends them. From here on, a line for each refusal.')
  if (page) line(`See it in a browser, and keep this address to yourself: ${page.address}`)
  const stopLog = logDecisions(refusals)
  return {
    async close() {
      stopLog()
      await page?.close()
      await room?.close()
      await stage.close()
    },
  }
})
