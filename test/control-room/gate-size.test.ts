import { gzipSync } from 'node:zlib'
import { expect, it } from 'vitest'
import { builtPage } from './built-page.js'

const MAX_BYTES = 150_000

/** Names of kinds of markup, which no browser asks for. */
const NAMESPACE = /^http:\/\/www\.w3\.org\/(?:1998\/Math\/MathML|1999\/xhtml|2000\/svg)$/

it('is a page of at most 150 kB, as it goes over the wire when compressed', async () => {
  const files = await builtPage()
  expect([...files.keys()]).toEqual(['index.html', 'main.js', 'main.css'])
  const sizes = [...files.values()].map(({ content }) => gzipSync(content).length)
  expect(sizes.every((size) => size > 300)).toBe(true)
  expect(sizes.reduce((sum, size) => sum + size)).toBeLessThan(MAX_BYTES)
})

it('names nothing that would be loaded from elsewhere', async () => {
  for (const [name, { content }] of await builtPage()) {
    const text = content.toString()
    const addresses = text.match(/\b(?:https?|wss?):\/\/[^\s"'`)<>]+/g) ?? []
    expect([name, addresses.filter((address) => !NAMESPACE.test(address))]).toEqual([name, []])
    expect(text).not.toMatch(/(?:src|href)\s*=\s*["']?\/\/|url\(\s*["']?\/\/|@import/)
    expect(text).not.toContain('sourceMappingURL')
  }
})
