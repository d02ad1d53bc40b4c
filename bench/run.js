/* Measures all sections, or those that are named, and prints one table. It tests nothing. */
import { existsSync } from 'node:fs'
import { cpus, loadavg } from 'node:os'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { startPostgres } from '../test/support/postgres/postgres.js'
import { startRedis } from '../test/support/redis/redis.js'
import useTemporaryHome from '../test/support/run/temporary-home.js'
import { startIssuer } from './issuer.js'
import { createLoad } from './load.js'
import { isPinned, pinToLoadCore } from './processes.js'
import { client } from './sections/client.js'
import { growth } from './sections/growth.js'
import { postgres } from './sections/postgres.js'
import { startup } from './sections/startup.js'
import { tokens } from './sections/tokens.js'
import { writes } from './sections/writes.js'
import { createTable, versionOf } from './table.js'

const SECTIONS = { tokens, writes, postgres, client, growth, startup }

const FEW = 10
/** Sent in turn: twice as many as any cache here holds, so that each has been forgotten. */
const FRESH = 20_000

const { names, otherBuild } = readArguments()
const began = performance.now()
const removeTemporaryHome = await useTemporaryHome()
const issuer = await startIssuer()
const fresh = await issuer.mint(FRESH)
// What is started from here on shares the core of the load, but for the servers under test.
pinToLoadCore()
const redis = await startRedis({ config: { 'enable-debug-command': 'local' } })
try {
  const load = createLoad({ few: fresh.slice(0, FEW), fresh })
  const settings = {
    build: new URL('../', import.meta.url).href,
    issuer: issuer.url,
    redisUrl: redis.url,
  }
  const table = createTable()
  const bench = { issuer, load, otherBuild, redis, settings, startPostgres, table }
  const cores = `${cpus().length} cores, ${cpus()[0].model.trim()}`
  const pinning = isPinned ? 'the server on one, load and stores on the other' : 'not pinned'
  const programs = ['express', 'ioredis'].map(versionOf)
  console.log(`Node ${process.versions.node}, ${programs.join(', ')}; ${cores}, ${pinning};`)
  console.log(`load of the machine at the start ${loadavg()[0].toFixed(1)}.\n`)
  for (const name of names) {
    await SECTIONS[name](bench)
    console.error(
      `${name}: done after ${((performance.now() - began) / 60_000).toFixed(1)} minutes`,
    )
  }
  table.print()
} finally {
  issuer.stop()
  await redis.stop()
  await removeTemporaryHome()
}
// The load's connections are still open.
process.exit()

function readArguments() {
  try {
    const { positionals, values } = parseArgs({
      allowPositionals: true,
      options: { other: { type: 'string' } },
    })
    const unknown = positionals.filter((name) => !Object.hasOwn(SECTIONS, name))
    if (unknown.length > 0) {
      const known = Object.keys(SECTIONS).join(', ')
      throw new Error(`there is no section ${unknown.join(', ')}, but ${known}`)
    }
    const names = positionals.length > 0 ? positionals : Object.keys(SECTIONS)
    return { names, otherBuild: values.other && buildIn(values.other) }
  } catch ({ message }) {
    console.error(message)
    return process.exit(1)
  }
}

/** Another copy of this package that has been built, as a URL. */
function buildIn(folder) {
  const path = resolve(process.env.INIT_CWD ?? '.', folder)
  if (!existsSync(`${path}/dist`)) throw new Error(`--other: there is no ${path}/dist`)
  return pathToFileURL(`${path}/`).href
}
