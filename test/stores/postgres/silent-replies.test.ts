import { Socket } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { sharedPostgres } from '../../support/postgres/postgres-database.js'
import { startPostgresProxy } from '../../support/postgres/postgres-proxy.js'
import { createLedger } from '../../support/receiver/coupled-receiver.js'
import { call, newKey } from '../../support/receiver/order-calls.js'
import { ADAPTERS, type Adapter } from './adapters/libraries.js'
import { effectOf, openOnAdapter } from './open-on-adapter.js'

const postgres = await sharedPostgres()
const ledger = await createLedger(postgres)

const MAX = 5
const LIMITS = { acquireMs: 750, transactionMs: 500, resolveMs: 250 }
/** Longer than any run, as the guide says. */
const SOCKET_MS = 2000
const HEALED_WITHIN_MS = 10_000

const openSocket = (): Socket => {
  const socket = new Socket()
  return socket.setTimeout(SOCKET_MS, () => socket.destroy())
}

const WITHOUT_SETTING = ADAPTERS.filter(({ name }) => name === 'pg' || name === 'TypeORM')

/** The other libraries, with the setting that the guide names. */
const WITH_SETTING = ADAPTERS.filter((adapter) => !WITHOUT_SETTING.includes(adapter)).map(
  ({ name, open }): Adapter => ({ name, open: (url, max) => open(url, max, openSocket) }),
)

/** When the replies stop: they are those of BEGIN, of the handler's statement, or of the record and COMMIT. */
const MOMENTS = ['before the run', 'before the write', 'after the write'] as const

/** drizzle itself loses a connection whose `begin` has failed, as docs/stores/postgres.md says. */
const momentsOf = ({ name }: Adapter) =>
  name === 'drizzle' ? MOMENTS.filter((moment) => moment !== 'before the run') : MOMENTS

describe.each([...WITHOUT_SETTING, ...WITH_SETTING])('$name', (adapter) => {
  it.each(momentsOf(adapter))(
    'gives up five connections whose replies never come: %s',
    async (moment) => {
      const proxy = await startPostgresProxy(postgres)
      onTestFinished(() => proxy.stop())
      let waiting: (() => void)[] = []
      /** Resolves when all handlers wait, after which nothing gets through. */
      const meet = (): Promise<void> =>
        new Promise((resolve) => {
          waiting.push(resolve)
          if (waiting.length < MAX) return
          if (isSilent) proxy.hold()
          for (const go of waiting.splice(0)) go()
        })
      let at: (typeof MOMENTS)[number] | undefined
      let isSilent = false
      const receiver = await openOnAdapter(adapter, {
        url: proxy.urlFor(ledger.name),
        max: MAX,
        store: LIMITS,
        handler:
          (store, { execute }) =>
          async (request, response) => {
            const tx = store.transactionOf(request)
            if (at === 'before the write') await meet()
            await execute(tx, effectOf(request))
            if (at === 'after the write') await meet()
            response.status(201).json({})
          },
      })
      const five = () =>
        Promise.all(Array.from({ length: MAX }, () => call(receiver.port, { key: newKey() })))
      // The first of a library takes longer than others.
      await expect.poll(async () => (await call(receiver.port, { key: newKey() })).status).toBe(201)
      // Fills the pool.
      at = 'before the write'
      await five()
      waiting = []
      isSilent = true
      at = moment
      if (moment === 'before the run') proxy.hold()
      for (const { status } of await five()) expect(status).toBe(503)
      at = undefined
      // New connections get through.
      await expect
        .poll(async () => (await call(receiver.port, { key: newKey() })).status, {
          timeout: HEALED_WITHIN_MS,
        })
        .toBe(201)
    },
    40_000,
  )
})
