import { logDecisions } from 'express-service-auth'
import { apiKeyFrom, DEFAULT_PORTS, portFrom, textFrom } from './environment.js'
import { launch } from './launch.js'
import { jsonLines } from './orders/json-lines.js'
import { StartError } from './start-error.js'
import { writeCurlLines } from './story/curl-lines.js'
import { writeMigrationLines } from './story/migration-lines.js'
import { tellMigration } from './story/migration-story.js'
import { createOperator } from './story/operator.js'
import { writeOperatorLines } from './story/operator-lines.js'
import { type Stage, setStage } from './story/stage.js'
import { type Answer, play } from './story/step.js'
import { storySteps } from './story/steps.js'
import { tell } from './story/tell.js'
import { createTerminal, type Terminal } from './story/terminal.js'

await launch('start', async () => {
  const { isOnce, isMigration } = readFlags(process.argv.slice(2))
  if (isMigration) return startMigration(isOnce)
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

function readFlags(words: readonly string[]): { isOnce: boolean; isMigration: boolean } {
  const unknown = words.find((word) => word !== '--once' && word !== 'migration')
  if (unknown === undefined) {
    return { isOnce: words.includes('--once'), isMigration: words.includes('migration') }
  }
  throw new StartError(`unknown option ${unknown}; there are --once and the story migration`)
}

/** The other story: accounts move into the core. */
async function startMigration(isOnce: boolean) {
  const { stage, isAsTold } = await tellMigration()
  if (!isOnce) {
    writeMigrationLines(stage)
    return stage
  }
  await stage.close()
  process.exitCode = isAsTold ? 0 : 1
  return undefined
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
