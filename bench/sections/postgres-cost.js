import { startApp } from '../measure.js'
import { SERVER_CORE, startNode } from '../processes.js'
import { atMost, printTable } from '../table.js'

const REQUESTS = 50
const ROWS = 100_000
const LIBRARIES = { pg: 0, kysely: 2, typeOrm: 2, prisma: 2 }
const EQUAL_REQUESTS = 200
const MAX_BYTES_OF_RECORD = 200
const MAX_BYTES_OF_TOKEN = 120

/** A wire to Postgres; resolves with its node and its URL. */
export async function startWire({ url, port }, delayMs) {
  const file = new URL('../wire.js', import.meta.url).pathname
  const node = startNode(SERVER_CORE, file, [port, delayMs].map(String))
  const wire = await node.answer()
  return { node, url: url.replace(`:${port}/`, `:${wire.port}/`) }
}

/** What a coupled write costs Postgres beyond the same write alone. */
export async function postgresCost(bench) {
  const rows = []
  for (const [library, mostTrips] of Object.entries(LIBRARIES)) {
    const bare = await costOf(bench, { app: 'bare', library })
    const coupled = await costOf(bench, { app: 'coupled', library })
    const trips = coupled.trips - bare.trips
    const commits = coupled.commits - bare.commits
    const tripCells = [trips.toFixed(2), atMost(mostTrips, trips)]
    rows.push([library, ...tripCells, commits.toFixed(2), atMost(0, commits)])
  }
  printTable(['a coupled write beyond the bare one', 'round trips', 'aim', 'commits', 'aim'], rows)
  const trips = await tripsOfEqualRequests(bench)
  printTable(
    ['while one of them runs', 'round trips', 'aim'],
    [[`${EQUAL_REQUESTS} equal requests in the process`, trips, atMost(0, trips)]],
  )
  await sizes(bench)
}

/** For each request: waits for a reply, and transactions that have written something. */
async function costOf(bench, { app, library }) {
  const wire = await startWire(bench.postgres, 0)
  const settings = { library, postgresUrl: wire.url }
  const { node, port } = await startApp(bench, { app, settings })
  try {
    for (let sent = 0; sent < REQUESTS; sent += 1) await postOrder(bench, port)
    const before = { ...(await wire.node.ask({})), id: await transactionId(bench) }
    for (let sent = 0; sent < REQUESTS; sent += 1) await postOrder(bench, port)
    const after = { ...(await wire.node.ask({})), id: await transactionId(bench) }
    return {
      trips: (after.roundTrips - before.roundTrips) / REQUESTS,
      // The server's own work, such as vacuum, takes an id now and then.
      commits: Math.floor((after.id - before.id - 1) / REQUESTS),
    }
  } finally {
    await node.stop()
    await wire.node.stop()
  }
}

async function transactionId({ postgres }) {
  const { rows } = await postgres.pool.query('select pg_current_xact_id()::text as id')
  return Number(rows[0].id)
}

/** Posts an order. @returns {Promise<number>} the status */
export async function postOrder(bench, port, headers = {}) {
  const [token] = await bench.issuer.mint(1)
  const response = await fetch(`http://127.0.0.1:${port}/orders`, {
    method: 'POST',
    headers: {
      Authorization: `Bearer ${token}`,
      'Content-Type': 'application/json',
      'Idempotency-Key': crypto.randomUUID(),
      ...headers,
    },
    body: JSON.stringify({ item: 'book', quantity: 2 }),
  })
  await response.arrayBuffer()
  return response.status
}

async function tripsOfEqualRequests(bench) {
  const wire = await startWire(bench.postgres, 0)
  const settings = { library: 'pg', postgresUrl: wire.url }
  const { node, port } = await startApp(bench, { app: 'coupled', settings })
  try {
    const headers = { 'Idempotency-Key': crypto.randomUUID() }
    const hanging = node.answer()
    const first = postOrder(bench, port, { ...headers, 'X-Hang': 'idle' })
    await hanging
    const before = await wire.node.ask({})
    const statuses = await Promise.all(
      Array.from({ length: EQUAL_REQUESTS }, () => postOrder(bench, port, headers)),
    )
    const after = await wire.node.ask({})
    await first
    if (statuses.some((status) => status !== 409)) throw new Error('an equal request was let in')
    return after.roundTrips - before.roundTrips
  } finally {
    await node.stop()
    await wire.node.stop()
  }
}

/** Bytes of a row with its indexes, of a hundred thousand rows made like one that a request has left. */
async function sizes(bench) {
  const { pool, url: postgresUrl } = bench.postgres
  const settings = { library: 'pg', postgresUrl }
  const { node, port } = await startApp(bench, { app: 'coupled', settings })
  await pool.query('truncate service_auth.idempotency')
  await postOrder(bench, port)
  await node.stop()
  const { rows } = await pool.query(
    'select result, octet_length(result) as bytes from service_auth.idempotency',
  )
  const [{ result, bytes }] = rows
  await pool.query('truncate service_auth.idempotency, service_auth.used_token')
  await fillRecords(pool, { rows: ROWS, result, expiresIn: '1 day' })
  await pool.query(`insert into service_auth.used_token
    select gen_random_uuid(), now() + interval '15 minutes' + n * interval '1 ms'
    from generate_series(1, ${ROWS}) n`)
  const record = (await bytesOfRow(pool, 'idempotency')) - bytes
  const token = await bytesOfRow(pool, 'used_token')
  printTable(
    ['what is kept, with its indexes', 'bytes', 'aim'],
    [
      ['record beyond its response', record, atMost(MAX_BYTES_OF_RECORD, record)],
      ['used token', token, atMost(MAX_BYTES_OF_TOKEN, token)],
    ],
  )
}

/** Records that expire one after the other. */
export async function fillRecords(pool, { rows, result, expiresIn }) {
  await pool.query(
    `insert into service_auth.idempotency
      select gen_random_uuid(), decode(md5(n::text), 'hex'), $1, false, n::text::xid8,
        now() + $2::interval + n * interval '1 ms'
      from generate_series(1, ${rows}) n`,
    [result, expiresIn],
  )
}

async function bytesOfRow(pool, table) {
  const { rows } = await pool.query(
    `select pg_total_relation_size('service_auth.${table}') / count(*) as bytes
      from service_auth.${table}`,
  )
  return Number(rows[0].bytes)
}
