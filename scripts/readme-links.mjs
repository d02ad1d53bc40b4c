// While the package is packed, the links of its README lead to the repository, at the tag of the version: the files that
// they name are not in the package. node scripts/readme-links.mjs absolute | relative
import { readFileSync, writeFileSync } from 'node:fs'
import { repositoryAddress } from './repository-address.js'

const CODE = /(^```[\s\S]*?^```$)/m
const RELATIVE_LINK = /\]\((?![a-z]+:|#|\/)/g

const { repository, version } = JSON.parse(readFileSync('package.json', 'utf8'))
const address = repositoryAddress(repository)
if (address !== undefined) {
  const start = `](${address}/blob/v${version}/`
  const toAbsolute = (text) => text.replaceAll(RELATIVE_LINK, start)
  const toRelative = (text) => text.replaceAll(start, '](')
  const change = process.argv[2] === 'absolute' ? toAbsolute : toRelative
  const parts = readFileSync('README.md', 'utf8').split(CODE)
  writeFileSync('README.md', parts.map((part, index) => (index % 2 ? part : change(part))).join(''))
}
