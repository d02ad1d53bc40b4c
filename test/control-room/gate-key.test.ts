import { afterAll, describe, expect, it, vi } from 'vitest'
import { rawRequest } from '../support/network/raw-exchange.js'
import { NOTHING_HERE, openGate } from './gate-kit.js'

const { ask, post, port, key, own, close } = await openGate()
afterAll(close)

describe('with the key', () => {
  it('nothing is found that is not there', async () => {
    const paths = ['/nothing.js', '/../main.js', '//', '/api', '/api/', '/api/call/', '/events/']
    for (const path of [...paths, '/%2e%2e/main.js', '/main.js/', '/api/__proto__']) {
      expect(await ask({ path })).toBe(NOTHING_HERE)
    }
  })

  it('a method is taken only where it belongs', async () => {
    const answer = await rawRequest(port, { path: `/${key}/api/call`, host: own })
    expect(answer).toMatch(/^HTTP\/1.1 405 /)
    expect(answer).toContain('\r\nAllow: POST\r\n')
    expect(await post({ path: '/' })).toMatch(/^405 /)
    expect(await post({ path: '/events' })).toMatch(/^405 /)
  })

  it('a body must be JSON and of a size that a page needs', async () => {
    const type = (value: string) => [`Origin: http://${own}`, `Content-Type: ${value}`]
    const body = { method: 'POST', path: '/api/call' }
    expect(await ask({ ...body, headers: type('text/plain') })).toMatch(/^415 /)
    expect(await ask({ ...body, headers: type('application/jsonp') })).toMatch(/^415 /)
    expect(await ask({ ...body, headers: [`Origin: http://${own}`] })).toMatch(/^415 /)
    expect(await post({ body: '{"a":' })).toBe('400 {"error":"The body is not JSON."}')
    expect(await post({ body: '' })).toBe('400 {"error":"The body is not JSON."}')
    const large = (bytes: number) => JSON.stringify('x'.repeat(bytes - 2))
    expect(await post({ body: large(65_536) })).toBe('200 {"did":"call"}')
    expect(await post({ body: large(65_537) })).toBe('413 {"error":"The body is too large."}')
    expect(await post({ body: large(3_000_000) })).toMatch(/^413 /)
  })

  it('what the visitor can put right is told, a fault of our own is not', async () => {
    const complain = vi.spyOn(console, 'error').mockImplementation(() => {})
    expect(await post({ path: '/api/visitor-fault' })).toBe('400 {"error":"Say how many."}')
    expect(complain).not.toHaveBeenCalled()
    expect(await post({ path: '/api/own-fault' })).toBe(
      '500 {"error":"A fault of our own; the terminal tells more."}',
    )
    expect(complain).toHaveBeenCalledOnce()
  })
})
