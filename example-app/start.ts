import { type Logger, logDecisions } from 'express-service-auth'
import { openPage, type PageOptions } from './control-room/open-page.js'
import { ActionError } from './control-room/ports.js'
import type { RoomServer } from './control-room/server/serve-room.js'
import { apiKeyFrom, portOf, textFrom } from './environment.js'
import { launch } from './launch.js'
import { jsonLines } from './orders/json-lines.js'
import { StartError } from './start-error.js'
import { readStartOptions } from './start-options.js'
import { writeCurlLines } from './story/curl-lines.js'
import { writeMigrationLines } from './story/migration-lines.js'
import { playMigrationStory } from './story/migration-story.js'
import { createOperator } from './story/operator.js'
import { writeOperatorLines } from './story/operator-lines.js'
import { playSteps } from './story/play-steps.js'
import { type Stage, setStage } from './story/stage.js'
import { type Answer, play } from './story/step.js'
import { storySteps } from './story/steps.js'
import { createTerminal, type Terminal } from './story/terminal.js'

await launch('start', async () => {
  const { isOnce, isMigration, hasPage } = await readStartOptions(process.argv.slice(2))
  if (isMigration) return startMigration(isOnce)
  const port = portOf('controlRoom')
  const apiKey = apiKeyFrom('IDENTITY_CORE_API_KEY')
  const redisUrl = textFrom('REDIS_URL')
  const operator = createOperator()
  const stage = await setStage({
    ports: {
      identityCore: portOf('identityCore'),
      issuer: portOf('issuer'),
      orders: portOf('orders'),
      billing: portOf('billing'),
    },
    apiKey,
    addresses: { databaseUrl: textFrom('DATABASE_URL'), redisUrl },
    operator,
  })
  const steps = storySteps(stage)
  const terminal = createTerminal(steps)
  introduce(stage, terminal)

  const answers = new Map<string, Answer>()
  const isAsExpected = await playSteps(steps, terminal, (step) =>
    play(step, { stage, operator, answers }),
  )

  if (isOnce) {
    await stage.close()
    process.exitCode = isAsExpected ? 0 : 1
    return undefined
  }
  let page: RoomServer | undefined
  const log = logUnder(() => page?.address, terminal)
  const services = await stayUp(stage, { apiKey, terminal, log })
  return {
    begin() {
      services.begin()
      if (!hasPage) return
      void leadToPage({ core: stage.core, apiKey, redisUrl, port }, terminal).then((opened) => {
        page = opened
      })
    },
    async close() {
      // Does not wait for a page that is still being opened: its processes end with this one.
      await page?.close()
      await services.close()
    },
  }
})

/** The other story: accounts move into the core. */
async function startMigration(isOnce: boolean) {
  const { stage, isAsExpected } = await playMigrationStory()
  if (!isOnce) return { begin: () => writeMigrationLines(stage), close: () => stage.close() }
  await stage.close()
  process.exitCode = isAsExpected ? 0 : 1
  return undefined
}

function introduce({ core, ordersUrl, billingUrl, storeName }: Stage, terminal: Terminal): void {
  terminal.heading('express-service-auth: a story of three services')
  terminal.line(`identity-core  ${core.url}   mints tokens`)
  terminal.line(`issuer         ${core.issuer}   the API domain: publishes keys`)
  terminal.line(`orders         ${ordersUrl}   the receiver, store: ${storeName}`)
  terminal.line(`billing        ${billingUrl}   the caller`)
  terminal.line()
}

interface StayUpOptions {
  readonly apiKey: string
  readonly terminal: Terminal
  readonly log: Logger
}

async function stayUp(stage: Stage, { apiKey, terminal, log }: StayUpOptions) {
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
  let stopLog = () => {}
  return {
    begin() {
      terminal.line()
      terminal.heading('What the receiver logs: from here on, a line for each refusal')
      stopLog = logDecisions(log)
    },
    async close() {
      stopLog()
      await curl.close()
      await stage.close()
    },
  }
}

/** They fill a small terminal: a line is as long as three of its rows. */
const LINES_OF_A_SCREEN = 5

/** Logs JSON lines, and prints the address of the page again before they have scrolled it away. */
function logUnder(address: () => string | undefined, terminal: Terminal): Logger {
  let lines = 0
  const writeAt = (level: keyof Logger) => (event: object, message: string) => {
    jsonLines[level](event, message)
    lines += 1
    const shown = lines % LINES_OF_A_SCREEN === 0 ? address() : undefined
    if (shown !== undefined) terminal.heading(`Control room: ${shown}`)
  }
  return { info: writeAt('info'), warn: writeAt('warn'), error: writeAt('error') }
}

/** The services stay up even if the page cannot be opened. */
async function leadToPage(
  options: PageOptions,
  terminal: Terminal,
): Promise<RoomServer | undefined> {
  try {
    const page = await openPage(options)
    terminal.line()
    terminal.heading('See all of it in a browser. Whoever has this address can use it:')
    terminal.line(page.address)
    return page
  } catch (error) {
    const isUsersToFix = error instanceof StartError || error instanceof ActionError
    const why = isUsersToFix ? error.message.replace(/\s+/g, ' ') : error
    console.error(`start: no control room (CONTROL_ROOM_PORT is ${options.port}):`, why)
    return undefined
  }
}
