import { Panel } from '../components/panel.js'

export function ViewsPanel() {
  return (
    <Panel id="views" title="Views" about="">
      {null}
    </Panel>
  )
}
