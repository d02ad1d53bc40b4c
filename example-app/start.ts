import { logDecisions } from 'express-service-auth'
import { apiKeyFrom, DEFAULT_PORTS, portFrom, textFrom } from './environment.js'
import { launch } from './launch.js'
import { jsonLines } from './orders/json-lines.js'
import { StartError } from './start-error.js'
import { writeCurlLines } from './story/curl-lines.js'
import { createOperator } from './story/operator.js'
import { writeOperatorLines } from './story/operator-lines.js'
import { type Stage, setStage } from './story/stage.js'
import { type Answer, play } from './story/step.js'
import { storySteps } from './story/steps.js'
import { tell } from './story/tell.js'
import { createTerminal, type Terminal } from './story/terminal.js'

await launch('start', async () => {
  const { isOnce } = readFlags(process.argv.slice(2))
  const apiKey = apiKeyFrom('IDENTITY_CORE_API_KEY')
  const operator = createOperator()
  const stage = await setStage({
    ports: {
      identityCore: portFrom('IDENTITY_CORE_PORT', DEFAULT_PORTS.identityCore),
      orders: portFrom('ORDERS_PORT', DEFAULT_PORTS.orders),
      billing: portFrom('BILLING_PORT', DEFAULT_PORTS.billing),
    },
    apiKey,
    addresses: { databaseUrl: textFrom('DATABASE_URL'), redisUrl: textFrom('REDIS_URL') },
    operator,
  })
  const steps = storySteps(stage)
  const terminal = createTerminal(steps)
  introduce(stage, terminal)

  const answers = new Map<string, Answer>()
  const isAsTold = await tell(steps, terminal, (step) => play(step, { stage, operator, answers }))

  if (isOnce) {
    await stage.close()
    process.exitCode = isAsTold ? 0 : 1
    return undefined
  }
  return stayUp(stage, apiKey, terminal)
})

function readFlags(flags: readonly string[]): { isOnce: boolean } {
  const unknown = flags.find((flag) => flag !== '--once')
  if (unknown === undefined) return { isOnce: flags.length > 0 }
  throw new StartError(`unknown option ${unknown}; the only one is --once`)
}

function introduce({ core, ordersUrl, billingUrl, storeName }: Stage, terminal: Terminal): void {
  terminal.heading('express-service-auth: a story of three services')
  terminal.line(`identity-core  ${core.url}   mints tokens, publishes keys`)
  terminal.line(`orders         ${ordersUrl}   the receiver, store: ${storeName}`)
  terminal.line(`billing        ${billingUrl}   the caller`)
  terminal.line()
}

async function stayUp(stage: Stage, apiKey: string, terminal: Terminal) {
  const curl = await writeCurlLines(stage, apiKey)
  terminal.line()
  terminal.heading('The services stay up; Ctrl-C ends them. To try:')
  for (const [title, command] of curl.commands) {
    terminal.line()
    terminal.heading(title)
    terminal.line(command)
  }
  if (stage.isOnRedis) {
    terminal.line()
    terminal.heading('Operate it: from here, with the same REDIS_URL')
    for (const line of await writeOperatorLines(stage, curl.directory)) terminal.line(line)
  }
  terminal.line()
  terminal.heading('What the receiver logs:')
  const stopLog = logDecisions(jsonLines)
  return {
    async close() {
      stopLog()
      await curl.close()
      await stage.close()
    },
  }
}
