import { readFileSync } from 'node:fs'
import { importEntry } from '../apps/handlers.js'
import { TABLES } from '../apps/postgres.js'
import { addRates, compare } from '../table.js'

/** Each writes on all connections of its pool at once. */
const OPTIONS = { connections: 16, turns: 8, turnMs: 800 }
/** Every commit is flushed to the disk, as by default; checkpoints are rarer than the turns are long. */
const SERVER = {
  isOnDisk: true,
  settings: { fsync: 'on', shared_buffers: '256MB', max_wal_size: '4GB', checkpoint_timeout: '1h' },
}

/** Writes whose record commits with them, beside the same with a key by hand. */
export async function postgres(bench) {
  const server = await startDatabase(bench)
  try {
    const storeCpu = await createCpuMeter(server)
    const write = {
      settings: { postgresUrl: server.url },
      request: { kind: 'write', pool: 'few', status: 201 },
    }
    for (const { label, app, goal } of [
      { label: 'coupled write on pg', app: 'postgres/onPg', goal: 0.95 },
      { label: 'coupled write on postgres.js', app: 'postgres/onPostgresJs', goal: 0.85 },
    ]) {
      const [ours, byHand] = await compare(bench, {
        ours: { label, app, ...write },
        others: [{ label: 'by hand on pg, CPU', app: 'postgres/byHand', ...write, goal }],
        options: { ...OPTIONS, storeCpu },
      })
      const figure = `${label}, of by hand on pg, requests a second`
      addRates(bench, { figure, ours, other: byHand, goal })
    }
  } finally {
    await server.stop()
  }
}

export async function startDatabase({ startPostgres, settings }) {
  const server = await startPostgres(SERVER)
  const { migration } = await importEntry(settings.build, './postgres')
  await server.query(migration())
  await server.query(TABLES)
  return server
}

/** Returns a function for the processor time of all connections so far, in microseconds, with those that have ended. */
async function createCpuMeter(server) {
  const [{ lines }] = await server.query(`select pg_read_file('postmaster.pid') as lines`)
  const [pid] = lines.split('\n')
  const seen = new Map()
  return () => {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ')
    for (const child of children.filter(Boolean)) {
      seen.set(child, cpuOf(child) ?? seen.get(child) ?? 0)
    }
    return [...seen.values()].reduce((sum, each) => sum + each, 0)
  }
}

function cpuOf(pid) {
  try {
    const [nanoseconds] = readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')
    return Number(nanoseconds) / 1000
  } catch {
    // It has ended.
    return undefined
  }
}
