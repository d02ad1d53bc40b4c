/*
 * Sweeps in a process of its own: `node sweeper.js <build> <url>`. Asked over IPC; answers with what it
 * deleted, and the moments of its begin and end.
 */
import { Pool } from 'pg'
import { importEntry } from './build.js'

const [build, connectionString] = process.argv.slice(2)
const { fromPg, postgresStore } = await importEntry(build, './postgres')
const store = postgresStore(fromPg(new Pool({ connectionString, max: 1 })), { sweepSeconds: false })

const now = () => performance.timeOrigin + performance.now()

process.on('message', async () => {
  const begunAt = now()
  const deleted = await store.sweep()
  process.send({ begunAt, endedAt: now(), deleted })
})
process.on('disconnect', () => process.exit())
process.send({ isReady: true })
