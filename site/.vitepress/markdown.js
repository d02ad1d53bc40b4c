import { existsSync, statSync } from 'node:fs'
import { posix } from 'node:path'

/** Files of the repository that are no pages: a link leads to the source, or is only its text if there is none. */
export const linksToSource =
  ({ pages, source }) =>
  (md) => {
    md.core.ruler.push('links_to_source', ({ tokens, env }) => {
      const links = tokens.flatMap(({ children }) => children ?? [])
      for (const [index, token] of links.entries()) {
        const [path] = token.type === 'link_open' ? token.attrGet('href').split('#') : ['']
        if (path === '' || /^[a-z]+:|^\//.test(path)) continue
        const file = posix.join(posix.dirname(env.relativePath), path)
        if (existsSync(`${pages}/${file}/index.md`)) token.attrSet('href', `${path}/index.md`)
        else if (!isFile(`${pages}/${file}`) && existsSync(`${pages}/../../${file}`)) {
          if (source) token.attrSet('href', `${source}/blob/main/${file}`)
          else
            hide(
              token,
              links.slice(index).find(({ type }) => type === 'link_close'),
            )
        }
      }
    })
  }

const isFile = (path) => statSync(path, { throwIfNoEntry: false })?.isFile() ?? false

const hide = (...tokens) => {
  for (const token of tokens) Object.assign(token, { type: 'text', content: '' })
}

/** Names the column in each cell, for screens on which a row becomes a list; a row of a reason gets an anchor. */
export const namedCells = (md) => {
  md.core.ruler.push('named_cells', ({ tokens }) => {
    const seen = new Map()
    let heads = []
    let column = 0
    for (const [index, { type }] of tokens.entries()) {
      if (type === 'thead_open') heads = []
      if (type === 'tr_open') column = 0
      if (type === 'th_open') heads.push(tokens[index + 1].content)
      if (type === 'td_open') {
        tokens[index].attrSet('data-column', heads[column].replaceAll('`', ''))
        const [, name] = /^`([a-z]+_[a-z_]+)`$/.exec(tokens[index + 1].content) ?? []
        if (column === 0 && name) {
          const count = seen.get(name) ?? 0
          tokens[index].attrSet('id', count === 0 ? name : `${name}-${count}`)
          seen.set(name, count + 1)
        }
        column += 1
      }
    }
  })
}
