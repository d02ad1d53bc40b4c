import { readdir, readFile } from 'node:fs/promises'
import type { RequestListener } from 'node:http'
import { extname, join } from 'node:path'
import { ROOT } from '../docs/blocks.js'

export const BUILT = `${ROOT}site/dist`

const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.svg': 'image/svg+xml',
}

/** The paths of the pages of the site that was built last. @throws Error if none was. */
export async function builtPages(): Promise<readonly string[]> {
  const files = await readdir(BUILT, { recursive: true }).catch(() => {
    throw new Error('There is no site: build it with `npm run site`.')
  })
  return files
    .filter((file) => file.endsWith('.html') && file !== '404.html')
    .map((file) => `/${file}`)
}

/** Serves the site that was built last as any server of files would. */
export const siteServer: RequestListener = async (req, res) => {
  const { pathname } = new URL(req.url ?? '/', 'http://site')
  const path = join(BUILT, decodeURIComponent(pathname), pathname.endsWith('/') ? 'index.html' : '')
  const body = await readFile(path).catch(() => undefined)
  if (body === undefined) res.writeHead(404).end()
  else res.writeHead(200, { 'Content-Type': TYPES[extname(path)] ?? 'text/plain' }).end(body)
}
