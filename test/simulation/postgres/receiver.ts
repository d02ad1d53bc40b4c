import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Machine } from '../clock.js'
import type { Run } from '../history.js'
import { connect, type Package } from '../load.js'
import { type Context, type Opened, Receiver, ROUTE } from '../receiver.js'
import type { CoupledRoute, Ending, Plan } from '../story.js'

/** A dead server is noticed after so long, as the documents of the store advise. */
const CONNECT_WITHIN_MS = 5000

type PostgresStore = ReturnType<Package['postgresStore']>

interface Transaction {
  query(text: string, values?: readonly unknown[]): Promise<unknown>
}

/** A receiver whose handler writes to Postgres, in the transaction of its key. */
export class CoupledReceiver extends Receiver {
  readonly #transactions = new WeakMap<Run, Transaction>()
  /** One a process. */
  readonly #stores = new WeakMap<Machine, PostgresStore>()

  protected override open(): Opened {
    const { package: esa, story } = this.stage
    const { connections, retentionSeconds, isTokenSpentWithin, ...route } =
      story.coupled as CoupledRoute
    const { transactionMs, resolveMs, isolation, sweepSeconds } = route
    const pool = new esa.Pool({
      user: 'app',
      stream: connect as never,
      max: connections,
      connectionTimeoutMillis: CONNECT_WITHIN_MS,
    })
    const limits = { transactionMs, resolveMs, isolation, sweepSeconds }
    const store = esa.postgresStore(esa.fromPg(pool), limits)
    this.#stores.set(this.machine, store as PostgresStore)
    return {
      close() {
        store.close()
        void pool.end()
      },
      once: esa.requireIdempotencyKey({
        store,
        ...ROUTE,
        retentionSeconds,
        singleUse: story.isSingleUse && isTokenSpentWithin,
      }),
      ...(story.isSingleUse &&
        !isTokenSpentWithin && { singleUse: esa.requireSingleUse({ store }) }),
    }
  }

  /** Writes two rows, and works between them. */
  protected override async work(run: Run, plan: Plan, request: IncomingMessage): Promise<Ending> {
    const { idempotency } = request as IncomingMessage & { idempotency: Context }
    try {
      const store = this.#stores.get(this.stage.simulation.current as Machine) as PostgresStore
      const transaction = store.transactionOf(request) as Transaction
      this.#transactions.set(run, transaction)
      await write(transaction, run, 'first')
      await this.pause(plan.afterMs)
      await write(transaction, run, 'second')
      if (plan.ending === 'swallows an error')
        await transaction.query('select 1 / 0').catch(() => {})
      if (plan.ending === 'refuses and keeps its writes') store.keepWrites(request)
      const { signal } = idempotency
      if (plan.ending === 'hangs' && !signal.aborted)
        await new Promise((resolve) => signal.addEventListener('abort', resolve))
      return plan.ending
    } catch {
      return 'passes on an error'
    }
  }

  protected override answer(run: Run, ending: Ending, response: ServerResponse): void {
    super.answer(run, ending, response)
    const transaction = this.#transactions.get(run)
    if (ending !== 'writes late' || transaction === undefined) return
    const late = (): void => void write(transaction, run, 'late').catch(() => {})
    const afterMs = this.stage.simulation.random.pick([0, 1, 50])
    if (afterMs === 0) late()
    else void this.pause(afterMs).then(late)
  }
}

const write = (transaction: Transaction, run: Run, part: string): Promise<unknown> =>
  transaction.query('insert into effect (id) values ($1)', [`${run.number} ${part}`])
