import { networkInterfaces } from 'node:os'
import { afterAll, describe, expect, it } from 'vitest'
import { rawRequest } from '../support/network/raw-exchange.js'
import { brief, openGate } from './gate-kit.js'

const { quiet, ask, post, port, key, own, close } = await openGate()
const other = await openGate()
afterAll(() => Promise.all([close(), other.close()]))

const FOREIGN = '403 Not for you.'

describe('the page itself', () => {
  it('gets everything, by either name of this machine', async () => {
    expect(await ask()).toBe('200 <p>page</p>')
    expect(await ask({ path: '/?theme=dark' })).toBe('200 <p>page</p>')
    expect(await ask({ path: '/main.js' })).toBe('200 1')
    expect(await post()).toBe('200 {"did":"call"}')
    const host = `localhost:${port}`
    expect(await ask({ host })).toBe('200 <p>page</p>')
    const headers = [`Origin: http://${host}`, 'Sec-Fetch-Site: same-origin']
    expect(await post({ host, headers })).toBe('200 {"did":"call"}')
  })

  it('is found without the last slash, by whoever has the key', async () => {
    const answer = await rawRequest(port, { path: `/${key}`, host: own })
    expect(answer).toMatch(/^HTTP\/1.1 308 /)
    expect(answer).toContain(`\r\nLocation: /${key}/\r\n`)
  })

  it('comes with headers that keep its address and its rights to itself', async () => {
    const answers = [
      await rawRequest(port, { path: `/${key}/`, host: own }),
      await rawRequest(port, { path: '/', host: own }),
    ]
    for (const answer of answers) {
      expect(answer).toContain("\r\nContent-Security-Policy: default-src 'none'; script-src 'self'")
      expect(answer).toContain("; frame-ancestors 'none'; require-trusted-types-for 'script'\r\n")
      expect(answer).toContain('\r\nReferrer-Policy: no-referrer\r\n')
      expect(answer).toContain('\r\nX-Content-Type-Options: nosniff\r\n')
      expect(answer).toContain('\r\nCross-Origin-Opener-Policy: same-origin\r\n')
      expect(answer).toContain('\r\nCross-Origin-Resource-Policy: same-origin\r\n')
      expect(answer).toContain('\r\nCache-Control: no-store\r\n')
      expect(answer).not.toMatch(/access-control|set-cookie|x-powered-by/i)
    }
  })
})

describe('whoever is not the page', () => {
  it.each([
    ['evil.example', 'another name that leads to this machine'],
    ['127.0.0.1', 'no port'],
    ['127.0.0.1:1', 'another port'],
    ['127.0.0.2:PORT', 'another address of loopback'],
    ['[::1]:PORT', 'loopback of IPv6'],
    ['localhost.:PORT', 'a dot at the end'],
    ['user@127.0.0.1:PORT', 'a user'],
    ['127.0.0.1:PORT.evil.example', 'a longer name'],
    ['', 'nothing'],
  ])('is refused with Host %s: %s', async (name) => {
    const host = name.replace('PORT', String(port))
    expect(await ask({ host })).toBe(FOREIGN)
    expect(await ask({ host, path: '/events' })).toBe(FOREIGN)
    expect(await post({ host, headers: [`Origin: http://${host}`] })).toBe(FOREIGN)
  })

  it('is refused with two Hosts, or with another in the request line', async () => {
    expect(await ask({ headers: [`Host: ${own}`] })).toBe(FOREIGN)
    expect(await ask({ host: 'evil.example', headers: [`Host: ${own}`] })).toBe(FOREIGN)
    const path = `http://evil.example/${key}/`
    expect(brief(await rawRequest(port, { path, host: own }))).toBe(FOREIGN)
  })

  it.each([
    'http://evil.example',
    'null',
    'http://127.0.0.1:1',
    'http://127.0.0.1',
    'https://127.0.0.1:PORT',
    'http://localhost:PORT',
    'http://127.0.0.1:PORT, http://evil.example',
    '',
  ])('is refused with Origin %j', async (name) => {
    const headers = [`Origin: ${name.replace('PORT', String(port))}`]
    expect(await post({ headers })).toBe(FOREIGN)
    expect(await ask({ headers })).toBe(FOREIGN)
    expect(await ask({ headers, path: '/events' })).toBe(FOREIGN)
  })

  it('is refused without Origin, or with two, where something is done', async () => {
    expect(await post({ headers: [] })).toBe(FOREIGN)
    const origin = `Origin: http://${own}`
    expect(await post({ headers: [origin, origin] })).toBe(FOREIGN)
  })

  it.each(['cross-site', 'same-site', 'none', 'same-origin, none', ''])(
    'is refused when the browser says Sec-Fetch-Site: %j',
    async (site) => {
      const headers = [`Sec-Fetch-Site: ${site}`]
      expect(await post({ headers: [...headers, `Origin: http://${own}`] })).toBe(FOREIGN)
      expect(await ask({ headers, path: '/events' })).toBe(FOREIGN)
      expect(await ask({ headers, path: '/main.js' })).toBe(FOREIGN)
      expect(await ask({ headers })).toBe(site === 'none' ? '200 <p>page</p>' : FOREIGN)
    },
  )

  it('is refused without the key, with a wrong one, and with that of another room', async () => {
    const last = key.endsWith('A') ? 'B' : 'A'
    const others = other.key
    expect(others).not.toBe(key)
    const wrong = ['', key.slice(0, -1) + last, key.slice(1), `${key}${key}`, others, `.${key}`]
    for (const one of [...wrong, `%${key.charCodeAt(0).toString(16)}${key.slice(1)}`]) {
      for (const path of ['/', '/events', '/main.js', '/favicon.ico']) {
        const answer = await rawRequest(port, { path: `/${one}${path}`, host: own })
        expect(brief(answer)).toBe(FOREIGN)
      }
      const headers = [`Origin: http://${own}`, 'Content-Type: application/json']
      const asked = { method: 'POST', path: `/${one}/api/call`, host: own, headers }
      expect(brief(await rawRequest(port, asked))).toBe(FOREIGN)
    }
  })

  it('has done nothing by all that', async () => {
    const before = quiet.acted.length
    await post({ headers: ['Origin: http://evil.example'] })
    await post({ host: 'evil.example' })
    expect(quiet.acted).toHaveLength(before)
  })
})

it('listens on the loopback address alone', async () => {
  const addresses = Object.values(networkInterfaces()).flatMap((all) => all ?? [])
  const foreign = addresses.filter(({ internal, family }) => !internal && family === 'IPv4')
  const reach = (host: string) => fetch(`http://${host}:${port}/`).then(({ status }) => status)
  expect(await reach('127.0.0.1')).toBe(403)
  for (const { address } of [...foreign, { address: '127.0.0.2' }]) {
    await expect(reach(address)).rejects.toThrow('fetch failed')
  }
  await expect(reach('[::1]')).rejects.toThrow('fetch failed')
})
