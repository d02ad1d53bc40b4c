import { describe, expect, it } from 'vitest'
import { type Built, faultsOfBuilt } from '../../site/make/built-faults.js'

const PAGE = `<html><head><link rel="stylesheet" href="/on/style.css"><script src="/on/app.js"></script>
</head><body><h1 id="top">Top</h1><a class="x" href="/on/folder/#part">in</a>
<a href="#top">up</a><a href="https://example.com/">out</a></body></html>`

const SITE: Built = {
  files: new Set(['index.html', 'a.html', 'folder/index.html', 'style.css', 'app.js', 'i.svg']),
  texts: new Map([
    ['a.html', PAGE],
    ['folder/index.html', '<h2 id="part" tabindex="-1">Part</h2><a href="../a.html">a</a>'],
    ['style.css', '.x{background:url(i.svg)}'],
  ]),
  base: '/on/',
  navigation: ['/a', '/folder/'],
}

const withPage = (html: string): Built => ({ ...SITE, texts: new Map([['a.html', html]]) })

describe('a site that was built', () => {
  it('has no faults where all is there', () => {
    expect(faultsOfBuilt(SITE)).toEqual([])
  })

  it.each([
    ['<a href="/on/gone.html">', 'a.html: the link to /on/gone.html leads nowhere.'],
    ['<a href="/a.html">', 'a.html: the link to /a.html leads nowhere.'],
    ['<a href="#gone">', 'a.html: the link to #gone leads to no heading of a.html.'],
    [
      '<a href="/on/index.html#gone">',
      'a.html: the link to /on/index.html#gone leads to no heading of index.html.',
    ],
    [
      '<script src="https://example.com/x.js">',
      'a.html loads https://example.com/x.js from elsewhere.',
    ],
    [
      '<link href="//example.com/x.css" rel="stylesheet">',
      'a.html loads //example.com/x.css from elsewhere.',
    ],
    ['<img alt="a > b" src="/on/gone.svg">', 'a.html loads /on/gone.svg, which is not there.'],
    [
      '<style>@import "https://example.com/f";</style>',
      'a.html loads https://example.com/f from elsewhere.',
    ],
  ])('%s is a fault', (html, fault) => {
    expect(faultsOfBuilt(withPage(html))).toEqual([fault])
  })

  it('has a fault where a page is outside of the navigation', () => {
    expect(faultsOfBuilt({ ...SITE, navigation: ['/a'] })).toEqual([
      'folder/index.html is not in the navigation.',
    ])
  })

  it('has a fault where a style sheet loads from elsewhere', () => {
    const texts = new Map([['style.css', '@font-face{src:url("https://example.com/f.woff2")}']])
    expect(faultsOfBuilt({ ...SITE, texts })).toEqual([
      'style.css loads https://example.com/f.woff2 from elsewhere.',
    ])
  })
})
