import { connect, type Socket } from 'node:net'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { type RoomServer, serveRoom } from '../../example-app/control-room/server/serve-room.js'
import { openExchange, type RawExchange } from '../support/network/raw-exchange.js'
import { until } from '../support/until.js'
import { FILES, quietRoom } from './quiet-room.js'

const MEGABYTE = 1024 * 1024

let quiet: ReturnType<typeof quietRoom>
let server: RoomServer
let address: URL

beforeEach(async () => {
  quiet = quietRoom()
  server = await serveRoom({ room: async () => quiet.room, files: FILES })
  address = new URL(server.address)
})
afterEach(() => server.close())

/** A page's stream, as bytes. */
function openStream(): RawExchange {
  const exchange = openExchange(Number(address.port))
  exchange.send({ path: `${address.pathname}events`, host: address.host })
  return exchange
}

const received = (exchange: RawExchange, text: string) =>
  until(`${text} is received`, async () => exchange.received().includes(text))

it('tells each of several pages what is, and then what is new', async () => {
  const first = openStream()
  await received(first, 'event: state\ndata: {"text":"one\\ntwo"}\n\n')
  expect(first.received()).toContain('\r\nContent-Type: text/event-stream; charset=utf-8\r\n')
  expect(first.received()).toContain('retry: 1000\n\n')
  quiet.tell('seconds', { seconds: [1] })
  await received(first, 'event: seconds\ndata: {"seconds":[1]}\n\n')

  const second = openStream()
  await received(second, 'event: state\n')
  quiet.tell('events', { events: ['</script>\r\n\u2028'] })
  for (const page of [first, second]) await received(page, 'data: {"events":["</script>\\r\\n')
  expect(second.received()).not.toContain('event: seconds')
})

it('forgets a page that has gone', async () => {
  const [first, second] = [openStream(), openStream()]
  await received(first, 'event: state')
  await received(second, 'event: state')
  expect(quiet.pages()).toBe(2)
  first.socket.destroy()
  await until('one page is left', async () => quiet.pages() === 1)
  quiet.tell('state', {})
  await received(second, 'data: {}')
})

it('lets a page go that does not read, and keeps nothing for it', async () => {
  const lazy: Socket = connect(Number(address.port), '127.0.0.1').on('error', () => {})
  lazy.pause()
  lazy.write(`GET ${address.pathname}events HTTP/1.1\r\nHost: ${address.host}\r\n\r\n`)
  const reader = openStream()
  await until('both pages are there', async () => quiet.pages() === 2)
  const text = 'x'.repeat(MEGABYTE / 4)
  let told = 0
  while (quiet.pages() === 2 && told < 200) {
    quiet.tell('events', { text, told })
    told += 1
    await received(reader, `"told":${told - 1}`)
  }
  // What the kernel takes for a connection of loopback, and a page's worth beyond.
  expect(told * text.length).toBeLessThan(20 * MEGABYTE)
  expect(quiet.pages()).toBe(1)
  lazy.destroy()
})

it('says every ten seconds that it is still there', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  try {
    const page = openStream()
    await until('the page is there', async () => quiet.pages() === 1)
    vi.advanceTimersByTime(10_000)
    await received(page, ': still here\n\n')
  } finally {
    vi.useRealTimers()
  }
})

it('takes as many pages as a person can look at, and no more', async () => {
  const pages = Array.from({ length: 32 }, openStream)
  await until('all are there', async () => quiet.pages() === pages.length)
  const oneMore = openStream()
  await received(oneMore, 'HTTP/1.1 503 ')
  pages[0]?.socket.destroy()
  await until('one has gone', async () => quiet.pages() === pages.length - 1)
  await received(openStream(), 'event: state')
})

it('ends with the server', async () => {
  const page = openStream()
  await received(page, 'event: state')
  await server.close()
  await page.closed
  expect(quiet.pages()).toBe(0)
})
