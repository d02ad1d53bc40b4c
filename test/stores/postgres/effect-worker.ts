import { request } from 'node:http'
import PgBoss from 'pg-boss'

// A worker that does what its jobs say by a request to a receiver; to be killed.

export const QUEUE = 'bills'

/** What a job of the queue says. */
export interface Bill {
  readonly order: string
}

export interface WorkerOptions {
  readonly databaseUrl: string
  readonly receiverPort: number
  readonly token: string
}

/** Works off the queue until it is stopped. */
export async function startWorker(options: WorkerOptions): Promise<PgBoss> {
  const boss = new PgBoss({
    connectionString: options.databaseUrl,
    schedule: false,
    migrate: false,
    maintenanceIntervalSeconds: 1,
  })
  boss.on('error', () => {})
  await boss.start()
  await boss.work<Bill>(QUEUE, { pollingIntervalSeconds: 0.5 }, async ([job]) => {
    if (job) await send(options, job.id, job.data)
  })
  return boss
}

/** The job's id is its `Idempotency-Key`: whoever gets it twice does it once. */
function send({ receiverPort, token }: WorkerOptions, id: string, bill: Bill): Promise<void> {
  const body = JSON.stringify(bill)
  return new Promise((resolve, reject) => {
    const headers = {
      authorization: `Bearer ${token}`,
      'idempotency-key': id,
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
    }
    const target = { host: '127.0.0.1', port: receiverPort, path: '/orders/1', method: 'POST' }
    const sent = request({ ...target, headers, agent: false }, (response) => {
      response.resume()
      const { statusCode = 0 } = response
      response.on('end', () => {
        if (statusCode < 300) resolve()
        else reject(new Error(`The receiver answers ${statusCode}`))
      })
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

const { WORKER_DATABASE: databaseUrl, WORKER_RECEIVER, WORKER_TOKEN: token } = process.env
if (process.send && databaseUrl && WORKER_RECEIVER && token) {
  await startWorker({ databaseUrl, receiverPort: Number(WORKER_RECEIVER), token })
  process.send('works')
}
