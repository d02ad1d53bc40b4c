import { once } from 'node:events'
import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { LOAD_CORE, spawnPinned } from './processes.js'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const PROGRAM = ['--import', 'tsx', 'example-app/identity-core/main.ts']

/** The example's core on a fresh database each time it is started: what one turn stages is not there in the next. */
export async function prepareStandInCore(apiKey) {
  const home = await mkdtemp(join(tmpdir(), 'bench-core-'))
  const template = join(home, 'template')
  const first = await start(template, apiKey)
  await first.stop()
  let turns = 0
  return {
    async start() {
      turns += 1
      const database = join(home, String(turns))
      await cp(template, database, { recursive: true })
      const core = await start(database, apiKey)
      const stop = async () => {
        await core.stop()
        await rm(database, { recursive: true })
      }
      return { url: core.url, stop }
    },
    remove: () => rm(home, { recursive: true }),
  }
}

/** Its job is off: it only takes what is staged. */
async function start(database, apiKey) {
  const core = spawnPinned(LOAD_CORE, process.execPath, PROGRAM, {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {
      ...process.env,
      IDENTITY_CORE_PORT: '0',
      ISSUER_PORT: '0',
      IDENTITY_CORE_API_KEY: apiKey,
      IDENTITY_CORE_DATABASE: database,
      IDENTITY_CORE_KEYS_FILE: `${database}.keys.json`,
      IDENTITY_CORE_TENANTS: 'shop',
      IDENTITY_CORE_ROLES: 'customer,editor',
      BULK_MIGRATION_CRON_ENABLED: 'false',
    },
  })
  const ended = once(core, 'exit')
  const [line] = await Promise.race([
    once(core.stdout, 'data'),
    ended.then(([code]) => {
      throw new Error(`the stand-in core ended with ${code}`)
    }),
  ])
  const [url] = /http:\S+/.exec(String(line))
  return {
    url,
    async stop() {
      core.kill()
      await ended
    },
  }
}
